package servers

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/go-sql-driver/mysql"
)

// sqlProgram is what differs between MariaDB and MySQL.
type sqlProgram struct {
	name    string
	path    string
	args    []string // for every run of the server
	timeout time.Duration
	// install returns the command that fills the empty data directory in dir.
	install func(dir string) (path string, args []string)
}

// sqlDir is where the parts of a SQL server lie under the directory it was given.
type sqlDir string

func (d sqlDir) data() string     { return filepath.Join(string(d), "data") }
func (d sqlDir) tmp() string      { return filepath.Join(string(d), "tmp") }
func (d sqlDir) log() string      { return filepath.Join(string(d), "server.log") }
func (d sqlDir) initFile() string { return filepath.Join(string(d), "init.sql") }

// startSQL runs program with everything it has in dir.
func startSQL(ctx context.Context, dir string, program sqlProgram) (*SQLServer, error) {
	dir, err := filepath.EvalSymlinks(dir) // the server reports its data directory resolved
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", program.name, err)
	}
	return retryPorts(func() (*SQLServer, error) {
		port, err := freePort()
		if err != nil {
			return nil, fmt.Errorf("start %s: %w", program.name, err)
		}
		server := newSQL(sqlDir(dir), port, program)
		if err := server.first(ctx); err != nil {
			return nil, fmt.Errorf("start %s: %w", program.name, err)
		}
		return server, nil
	})
}

func newSQL(dir sqlDir, port int, program sqlProgram) *SQLServer {
	base := mysql.NewConfig()
	base.User, base.Passwd, base.Net, base.Addr = sqlUser, sqlPassword, "tcp", loopback(port)
	return &SQLServer{base: base, Server: &Server{
		name:    program.name,
		proc:    process{command: command{path: program.path, args: sqlArgs(dir, port, program), dir: string(dir), log: dir.log()}},
		timeout: program.timeout,
		prepare: func(ctx context.Context) error { return prepareSQL(ctx, dir, program) },
		wipe:    func() error { return os.RemoveAll(dir.data()) },
		ready:   func(ctx context.Context) error { return askSQL(ctx, base, dir.data()) },
	}}
}

// sqlArgs keeps the servers' own defaults for durability: a benchmark on them counts.
func sqlArgs(dir sqlDir, port int, program sqlProgram) []string {
	args := []string{
		"--no-defaults", "--datadir=" + dir.data(), "--tmpdir=" + dir.tmp(), "--init-file=" + dir.initFile(),
		"--port=" + strconv.Itoa(port), "--bind-address=127.0.0.1", "--skip-name-resolve",
		"--socket=" + filepath.Join(string(dir), "sql.sock"), "--pid-file=" + filepath.Join(string(dir), "sql.pid"),
		"--character-set-server=utf8mb4", "--max-connections=300", "--default-time-zone=+00:00",
	}
	return append(append(args, runAsRoot()...), program.args...)
}

// runAsRoot lets the server run as root where the tests do: it refuses otherwise, unless it is informed to.
func runAsRoot() []string {
	if os.Geteuid() == 0 {
		return []string{"--user=root"}
	}
	return nil
}

// prepareSQL fills the data directory and writes the statements that the server runs at each start: our account.
func prepareSQL(ctx context.Context, dir sqlDir, program sqlProgram) error {
	if err := os.MkdirAll(dir.tmp(), 0o700); err != nil {
		return err
	}
	account := fmt.Sprintf("CREATE USER IF NOT EXISTS '%[1]s'@'127.0.0.1' IDENTIFIED BY '%[2]s';\n"+
		"GRANT ALL PRIVILEGES ON *.* TO '%[1]s'@'127.0.0.1' WITH GRANT OPTION;\n", sqlUser, sqlPassword)
	if err := os.WriteFile(dir.initFile(), []byte(account), 0o600); err != nil {
		return err
	}
	return installSQL(ctx, dir, program)
}

func installSQL(ctx context.Context, dir sqlDir, program sqlProgram) error {
	if err := os.RemoveAll(dir.data()); err != nil { // what a start that lost its port left
		return err
	}
	path, args := program.install(string(dir))
	cmd := exec.CommandContext(ctx, path, append(args, runAsRoot()...)...)
	cmd.Dir = string(dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("make its data directory: %w\n%s", err, out)
	}
	return nil
}
