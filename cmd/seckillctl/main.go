// Command seckillctl is the operator's command line: migrations, tokens, ledgers, rebuilds, dead
// letters, limiters, API keys, access codes, draws and plans.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"flashsale.dev/seckill/internal/app"
	"flashsale.dev/seckill/internal/auth"
	"flashsale.dev/seckill/internal/config"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/sqlstore"
)

func main() { app.Main(run) }

// commands is the command line. The environment variable that a flag's help names sets it too.
type commands struct {
	Output  string           `short:"o" enum:"text,json" default:"text" help:"How results are printed: text or json."`
	Version kong.VersionFlag `help:"Print the version, commit and date, and end."`

	Migrate     migrateCmd     `cmd:"" help:"Bring the database up to date; create what is missing."`
	Token       tokenCmd       `cmd:"" help:"Sign a token for a buyer, a merchant or an operator."`
	Ledger      ledgerCmd      `cmd:"" help:"Account for every unit of a sale."`
	Rebuild     rebuildCmd     `cmd:"" help:"Shut a sale's gate, write all reservations in flight, and rebuild the sale in Redis."`
	DeadLetters deadLettersCmd `cmd:"" name:"dead-letters" help:"Resolve orders that could not be written."`
	Limiter     limiterCmd     `cmd:"" help:"Read and change rate limiters while they run, on every node."`
	APIKey      apiKeyCmd      `cmd:"" name:"api-key" help:"Make, list and revoke keys of merchants' back ends."`
	Codes       codesCmd       `cmd:"" help:"Print access codes for a sale that asks for them."`
	Draw        drawCmd        `cmd:"" help:"Check the draw of a waiting room."`
	Plan        planCmd        `cmd:"" help:"Print what a sale costs: counts of work, multiplied by measured costs. It contacts no server."`
	Health      healthCmd      `cmd:"" help:"Ask a program whether it is ready, as a container's probe does."`
}

const description = "The operator's command line of the flash sale.\n\n" +
	"Exit codes: 0 success. 1 failure, or unknown outcome: retry. 2 wrong command line, or a " +
	"destructive command without confirmation (-yes). 3 refused: no such object, or its state does " +
	"not allow it. 4 the ledger does not balance. 5 another process rebuilds the sale. " +
	"6 the draw does not verify."

// session holds what every command uses. Commands get it instead of globals, so that a test runs
// them with its own streams.
type session struct {
	ctx            context.Context
	stdin          io.Reader
	stdout, stderr io.Writer
	json           bool
}

// run runs a command with the process' standard input, from which it reads confirmations. app.Main
// passes no input. It reads the process' own environment instead of environ, because kong reads no
// other.
func run(ctx context.Context, args, environ []string, stdout, stderr io.Writer) error {
	return withExitCode(runWith(ctx, args, os.Stdin, stdout, stderr))
}

func runWith(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) error {
	var c commands
	// An empty setting has its default, as in the programs; kong would take it for a value.
	for _, s := range config.Settings("") {
		if value := s.Trim(os.Getenv(s.Name)); value != "" {
			_ = os.Setenv(s.Name, value)
		} else {
			_ = os.Unsetenv(s.Name)
		}
	}
	// kong ends the process after -help and -version unless it gets another exit function. A
	// process that ends there would skip the deferred calls of app.Main.
	done := false
	parser, err := kong.New(&c, kong.Name("seckillctl"), kong.Description(description),
		kong.UsageOnError(), kong.Vars{"version": "seckillctl " + app.Version()},
		kong.Writers(stdout, stderr), kong.Exit(func(int) { done = true }))
	if err != nil {
		return err
	}
	k, err := parser.Parse(longFlags(args))
	switch {
	case done: // kong has printed the help or the version
		return nil
	case err != nil:
		return usage(fmt.Errorf("%w (seckillctl --help lists the commands and flags)", err))
	}
	if err := checkNumbers(k.Flags()); err != nil {
		return usage(err)
	}
	err = k.Run(&session{
		ctx: ctx, stdin: stdin, stdout: stdout, stderr: stderr, json: c.Output == "json",
	})
	return withRemedy(err, k.Flags())
}

// checkNumbers holds the flags of settings to the bounds of the programs. A rebuild with other ones
// would shut a gate for too short a time, or send its barrier through a queue that no program uses.
func checkNumbers(flags []*kong.Flag) error {
	var problems []error
	settings := config.Settings("")
	for _, f := range flags {
		i := slices.IndexFunc(settings, func(s config.Setting) bool {
			return slices.Contains(f.Envs, s.Name)
		})
		switch value := f.Target.Interface().(type) {
		case int, time.Duration:
			if i < 0 {
				break
			}
			if err := settings[i].Check(value); err != nil {
				problems = append(problems, fmt.Errorf("%w (--%s)", err, f.Name))
			}
		}
	}
	return errors.Join(problems...)
}

// longFlags returns the arguments with two dashes for flags that have one, which the other programs
// accept. kong would read -yes as the short flags y, e and s. -ojson and -otext stay as they are.
// Without any argument it returns --help, because a mere error would not list the commands.
func longFlags(args []string) []string {
	if len(args) == 0 {
		return []string{"--help"}
	}
	list := slices.Clone(args)
	for i, a := range list {
		if a == "--" {
			break
		}
		name, _, _ := strings.Cut(a, "=")
		long := len(name) > 2 && name[0] == '-' && name[1] >= 'a' && name[1] <= 'z'
		if long && a != "-ojson" && a != "-otext" {
			list[i] = "-" + a
		}
	}
	return list
}

// database holds the flag of commands that use MySQL. Its variable is the one that the programs
// read, so that a shell which starts a program can also operate it.
type database struct {
	DSN string `name:"mysql-dsn" env:"SECKILL_MYSQL_DSN" default:"seckill:seckill@tcp(127.0.0.1:3306)/seckill" help:"Go-sql-driver DSN, or sqlite:FILE."`
}

// with opens the database, calls work and closes it. It never migrates: an old program must not
// change a newer schema. It refuses a missing SQLite file, which SQLite would create.
func (d database) with(s *session, work func(*sqlstore.Store) error) error {
	if file, sqlite := sqlstore.SQLiteFile(d.DSN); sqlite {
		if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
			return usage(fmt.Errorf("--mysql-dsn or SECKILL_MYSQL_DSN: there is no file %s", file))
		}
	}
	return d.withNew(s, work)
}

// withNew works as with, and lets SQLite create a missing file.
func (d database) withNew(s *session, work func(*sqlstore.Store) error) error {
	store, err := sqlstore.Open(s.ctx, d.DSN, "")
	if err != nil {
		err = fmt.Errorf("--mysql-dsn or SECKILL_MYSQL_DSN: %w", err)
		if _, sqlite := sqlstore.SQLiteFile(d.DSN); sqlite {
			return err
		}
		return usage(err) // MySQL is not contacted yet: its DSN is malformed
	}
	return errors.Join(work(store), store.Close())
}

// migrateCmd migrates the database. It is the only command that changes the schema, and it is safe
// to repeat.
type migrateCmd struct {
	database
	Wait time.Duration `default:"30s" help:"How long to wait for the database to answer."`
}

// Run waits until the database replies, then migrates it. Deployments start the database and this
// command at the same time, so a database that does not answer yet is no error.
func (c *migrateCmd) Run(s *session) error {
	return c.withNew(s, func(store *sqlstore.Store) error {
		if err := c.await(s.ctx, store); err != nil {
			return err
		}
		if err := store.MigrateWith(s.ctx, c.reportWait(s, store.Addr())); err != nil {
			return err
		}
		return s.print(map[string]bool{"migrated": true}, "the database is migrated")
	})
}

// reportWait returns what reports a wait for the lock. A migration that was killed holds it until
// the server has finished its statement.
func (c *migrateCmd) reportWait(s *session, addr string) func(holder int64) {
	return func(holder int64) {
		fmt.Fprintf(s.stderr,
			"another migration of the database at %s is running, or one that was "+
				"killed still runs its last statement: waiting for connection %d (SHOW PROCESSLIST "+
				"shows it; KILL %[2]d ends it)\n", addr, holder)
	}
}

// await waits until the database replies. A migration has no deadline of its own, because its steps
// may take hours, so it must not begin with a server that never answers.
func (c *migrateCmd) await(ctx context.Context, store *sqlstore.Store) error {
	waiting, cancel := context.WithTimeout(ctx, c.Wait)
	defer cancel()
	last := fmt.Errorf("the database at %s has not answered for %s (--wait): start it, or set "+
		"SECKILL_MYSQL_DSN (--mysql-dsn) to another", store.Addr(), c.Wait)
	for {
		err := store.Ping(waiting)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return err
		case waiting.Err() != nil:
			return last
		}
		// At the deadline Ping fails for that alone. Its error would hide the server's last one.
		if end, _ := waiting.Deadline(); time.Now().Before(end) {
			last = err
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// tokenCmd signs a token. Operators need it to call /admin by hand; buyers and merchants sign in
// elsewhere.
type tokenCmd struct {
	Secret string        `env:"SECKILL_JWT_SECRET" help:"The secret that signs tokens, at least 32 bytes; that of the standalone in --data if empty."`
	Data   string        `default:"data" help:"Data directory of a standalone, for its secret."`
	Role   string        `enum:"buyer,merchant,operator" default:"buyer" help:"buyer, merchant or operator."`
	Sub    string        `required:"" help:"The user's id: 1 to 64 printable ASCII characters without spaces."`
	Name   string        `help:"The user's name; it goes onto orders."`
	Phone  string        `help:"The user's phone number; it goes onto orders."`
	Email  string        `help:"The user's email address; it goes onto orders."`
	TTL    time.Duration `default:"1h" help:"How long the token is valid."`
}

// Run prints only the token, so that a shell can use it; JSON has its expiry too.
func (c *tokenCmd) Run(s *session) error {
	if c.TTL <= 0 {
		return usage(fmt.Errorf("--ttl %s: nobody could use the token", c.TTL))
	}
	secret, err := c.secret()
	if err != nil {
		return err
	}
	tokens, err := auth.New(secret, 0, time.Now)
	if err != nil {
		return usage(fmt.Errorf("SECKILL_JWT_SECRET (--secret), or jwt-secret in --data: %w", err))
	}
	token, err := tokens.Sign(seckill.Actor{
		ID: c.Sub, Role: seckill.Role(c.Role), Name: c.Name, Phone: c.Phone, Email: c.Email,
	}, c.TTL)
	if err != nil {
		return usage(fmt.Errorf("--sub, --name, --phone or --email: %w", err))
	}
	return s.print(map[string]any{"token": token, "expiresAt": time.Now().UTC().Add(c.TTL)}, "%s",
		token)
}

// secret returns the secret of the setting. If that is empty, as for a first user, it returns the
// one that a standalone keeps in its data directory. As in the API, spaces around a secret and the
// line break at the end of its file do not count.
func (c *tokenCmd) secret() ([]byte, error) {
	text := []byte(c.Secret)
	if c.Secret == "" {
		var err error
		if text, err = standaloneSecret(c.Data, "SECKILL_JWT_SECRET (--secret)"); err != nil {
			return nil, err
		}
	}
	return config.Secret(text).Ring()[0], nil // the others only verify
}

// standaloneSecret reads the secret of a standalone from its data directory. setting names what can
// be set instead.
func standaloneSecret(dir, setting string) ([]byte, error) {
	file := filepath.Join(dir, "jwt-secret")
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, usage(fmt.Errorf("no secret to sign with: set %s to that of the API, or "+
			"--data to the data directory of a standalone: %w", setting, err))
	}
	if len(text) == 0 {
		return nil, fmt.Errorf("the secret %s is empty: restore it from a backup, or set %s", file,
			setting)
	}
	return text, nil
}
