// Command seckillctl is the operator's hand.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"flashsale.dev/seckill/internal/app"
	"flashsale.dev/seckill/internal/auth"
	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/redisstore"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/servers"
	"flashsale.dev/seckill/internal/sqlstore"
)

func main() { app.Main(run) }

// commands are what may be asked. Every flag may be set by the environment variable that its help names.
type commands struct {
	Migrate migrateCmd `cmd:"" help:"Bring the database up to date; create what is missing."`
	Token   tokenCmd   `cmd:"" help:"Sign a token for a buyer, a merchant or an operator."`
	Ledger  ledgerCmd  `cmd:"" help:"Account for every unit of a sale."`
	Letters lettersCmd `cmd:"" name:"dead-letters" help:"Resolve orders that could not be written."`
	Health  healthCmd  `cmd:"" help:"Ask a program whether it is ready, as a container's probe does."`
}

// stage is what every command works with.
type stage struct {
	ctx    context.Context //nolint:containedctx // one command's run
	stdout io.Writer
}

func run(ctx context.Context, args, environ []string, stdout, stderr io.Writer) error {
	var c commands
	ended := false
	parser, err := kong.New(&c,
		kong.Name("seckillctl"), kong.Description("The operator's hand of the flash sale."), kong.UsageOnError(),
		kong.Writers(stdout, stderr), kong.Exit(func(int) { ended = true }))
	if err != nil {
		return err
	}
	for i, a := range args {
		if a == "-help" {
			args[i] = "--help"
		}
	}
	if len(args) == 0 {
		args = []string{"--help"}
	}
	k, err := parser.Parse(args)
	switch {
	case ended: // help was asked for and given
		return nil
	case err != nil:
		return err
	}
	return k.Run(&stage{ctx: ctx, stdout: stdout})
}

// database is the flag of commands that speak to MySQL.
type database struct {
	DSN string `name:"mysql-dsn" env:"SECKILL_MYSQL_DSN" default:"seckill:seckill@tcp(127.0.0.1:3306)/seckill" help:"Go-sql-driver DSN, or sqlite:FILE."`
}

type migrateCmd struct {
	database
	Wait time.Duration `default:"30s" help:"How long to wait for the database to answer."`
}

// Run waits for the database, then migrates.
func (c *migrateCmd) Run(s *stage) error {
	store, err := sqlstore.Open(s.ctx, c.DSN, sqlstore.Options{})
	if err != nil {
		return err
	}
	defer store.Close()
	ctx, cancel := context.WithTimeout(s.ctx, c.Wait)
	defer cancel()
	for store.Ping(ctx) != nil && ctx.Err() == nil {
		time.Sleep(200 * time.Millisecond)
	}
	if err := store.Migrate(s.ctx); err != nil {
		return err
	}
	fmt.Fprintln(s.stdout, "the database is up to date")
	return nil
}

type tokenCmd struct {
	Secret string        `env:"SECKILL_JWT_SECRET" required:"" help:"The secret that signs tokens, at least 32 bytes."`
	Role   string        `enum:"buyer,merchant,operator" default:"buyer" help:"buyer, merchant or operator."`
	Sub    int64         `required:"" help:"The user's id, above 0."`
	Name   string        `help:"The user's name; it goes onto orders."`
	Phone  string        `help:"The user's phone number; it goes onto orders."`
	TTL    time.Duration `default:"1h" help:"How long the token is good."`
}

// Run prints the token alone, so that a shell can take it.
func (c *tokenCmd) Run(s *stage) error {
	tokens, err := auth.New([]byte(c.Secret), 0, time.Now)
	if err != nil {
		return err
	}
	token, err := tokens.Sign(seckill.Actor{ID: c.Sub, Role: seckill.Role(c.Role), Name: c.Name, Phone: c.Phone}, c.TTL)
	if err != nil {
		return err
	}
	fmt.Fprintln(s.stdout, token)
	return nil
}

type ledgerCmd struct {
	database
	Redis   string `name:"redis-addrs" env:"SECKILL_REDIS_ADDRS" default:"127.0.0.1:6379" help:"Redis, comma list; more than one is a cluster."`
	Master  string `name:"redis-sentinel-master" env:"SECKILL_REDIS_SENTINEL_MASTER" help:"Name of the master that the sentinels watch."`
	GoodsID int64  `arg:"" help:"The goods id."`
}

// Run prints the ledger as JSON. A ledger that does not balance is an error.
func (c *ledgerCmd) Run(s *stage) error {
	store, err := sqlstore.Open(s.ctx, c.DSN, sqlstore.Options{})
	if err != nil {
		return err
	}
	defer store.Close()
	client := servers.Redis(strings.Split(c.Redis, ","), c.Master)
	defer client.Close()
	shelf := redisstore.New(client, redisstore.Options{})
	sale, err := store.Sale(s.ctx, c.GoodsID)
	if err != nil {
		return err
	}
	ledger, err := order.NewAuditor(nil, store, shelf, nil, nil).Ledger(s.ctx, sale)
	if err != nil {
		return err
	}
	enc := json.NewEncoder(s.stdout)
	enc.SetIndent("", "  ")
	if err := enc.Encode(ledger); err != nil {
		return err
	}
	if !ledger.Balanced {
		return fmt.Errorf("the ledger of goods %d does not balance: see the order-consumers' logs for what the audit found", c.GoodsID)
	}
	return nil
}
