package servers

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/go-sql-driver/mysql"
)

// EnvMySQLDir names the directory that scripts/mysql-fetch unpacked MySQL into, where it is not the
// default.
const EnvMySQLDir = "SECKILL_TEST_MYSQL_DIR"

// MariaDB starts a mariadbd for one test (2 s; a Suite shares one) and stops it at cleanup.
func MariaDB(tb testing.TB) *SQLServer {
	tb.Helper()
	return forTest(tb, "mariadb", StartMariaDB)
}

// StartMariaDB runs Debian's mariadbd with its data and log in dir and returns when it answers. The
// caller stops it. Where EnvExternalSQL is set, it is that server's handle instead.
func StartMariaDB(ctx context.Context, dir string) (*SQLServer, error) {
	return unlessExternal(ctx, dir, startMariaDB)
}

// OwnMariaDB is MariaDB for tests that stop it or change its settings: never an external server.
func OwnMariaDB(tb testing.TB) *SQLServer {
	tb.Helper()
	return forTest(tb, "mariadb", startMariaDB)
}

// MySQL starts a real Oracle mysqld for one test (some seconds; a Suite shares one) and stops it at
// cleanup.
func MySQL(tb testing.TB) *SQLServer {
	tb.Helper()
	return forTest(tb, "mysql", StartMySQL)
}

// StartMySQL runs the mysqld that scripts/mysql-fetch unpacked, with its data and log in dir, and
// returns when it answers. The caller stops it. Where EnvExternalSQL is set, it is that server's
// handle instead.
func StartMySQL(ctx context.Context, dir string) (*SQLServer, error) {
	return unlessExternal(ctx, dir, startMySQL)
}

func startMariaDB(ctx context.Context, dir string) (*SQLServer, error) {
	path, err := program("mariadbd")
	if err != nil {
		return nil, err
	}
	install, err := program("mariadb-install-db")
	if err != nil {
		return nil, err
	}
	return startSQL(ctx, path, sqlDir(dir), func(ctx context.Context, dir sqlDir) error {
		return dir.fill(ctx, install, "--auth-root-authentication-method=normal", "--skip-test-db")
	})
}

func startMySQL(ctx context.Context, dir string) (*SQLServer, error) {
	path, err := mysqldPath()
	if err != nil {
		return nil, err
	}
	install := func(ctx context.Context, dir sqlDir) error {
		return dir.fill(ctx, path, "--initialize-insecure", noFilePriv)
	}
	return startSQL(ctx, path, sqlDir(dir), install, mysqlArgs()...)
}

// noFilePriv: the default names a directory of Debian's package that is not there.
const noFilePriv = "--secure-file-priv=NULL"

// mysqlArgs are for every run of Oracle's server.
func mysqlArgs() []string {
	return []string{noFilePriv, "--mysqlx=OFF", "--performance-schema=OFF"}
}

// mysqldPath is the start script that scripts/mysql-fetch leaves beside what it unpacked, last of
// all, in the XDG cache directory on every system.
func mysqldPath() (string, error) {
	dir := os.Getenv(EnvMySQLDir)
	if cache := os.Getenv("XDG_CACHE_HOME"); dir == "" && cache != "" {
		dir = filepath.Join(cache, "seckill", "mysql")
	} else if dir == "" {
		dir = filepath.Join(os.Getenv("HOME"), ".cache", "seckill", "mysql")
	}
	path := filepath.Join(dir, "current", "run-mysqld")
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("mysqld is %w (%w)", ErrMissing, err)
	}
	return path, nil
}

// sqlDir is where the parts of a SQL server lie under the directory it was given.
type sqlDir string

func (d sqlDir) data() string     { return filepath.Join(string(d), "data") }
func (d sqlDir) tmp() string      { return filepath.Join(string(d), "tmp") }
func (d sqlDir) initFile() string { return filepath.Join(string(d), "init.sql") }

// startSQL runs a server with everything it has in dir, which install fills.
func startSQL(
	ctx context.Context, path string, dir sqlDir, install func(context.Context, sqlDir) error,
	args ...string,
) (*SQLServer, error) {
	// The server reports its data directory resolved.
	resolved, err := filepath.EvalSymlinks(string(dir))
	if err != nil {
		return nil, err
	}
	dir = sqlDir(resolved)
	return launchNew(ctx, filepath.Base(path), func() (*SQLServer, error) {
		port, err := freePort()
		if err != nil {
			return nil, err
		}
		s := newSQL(filepath.Base(path), path, dir, port,
			append(args, "--init-file="+dir.initFile())...)
		s.prepare = func(ctx context.Context) error { return install(ctx, dir) }
		return s, nil
	})
}

// newSQL is a server that has not been started. It keeps the servers' own defaults for durability:
// a benchmark on them counts.
func newSQL(name, path string, dir sqlDir, port int, args ...string) *SQLServer {
	args = append([]string{
		"--no-defaults", "--datadir=" + dir.data(), "--tmpdir=" + dir.tmp(),
		"--port=" + strconv.Itoa(port), "--bind-address=127.0.0.1", "--skip-name-resolve",
		"--socket=" + filepath.Join(string(dir), "sql.sock"),
		"--pid-file=" + filepath.Join(string(dir), "sql.pid"),
		"--character-set-server=utf8mb4", "--max-connections=300", "--default-time-zone=+00:00",
	}, append(args, runAsRoot()...)...)
	server := &SQLServer{base: mysql.NewConfig(), dir: dir}
	server.base.User, server.base.Passwd = sqlUser, sqlPassword
	server.base.Net, server.base.Addr = "tcp", loopback(port)
	server.Server = &Server{
		name: name, data: dir.data(), ready: server.isReady,
		proc: Process{
			Path: path, Args: args, Dir: string(dir),
			File: filepath.Join(string(dir), "server.log"),
		},
	}
	return server
}

// runAsRoot lets the server run as root where the tests do: without it, it refuses.
func runAsRoot() []string {
	if os.Geteuid() == 0 {
		return []string{"--user=root"}
	}
	return nil
}

// fill makes the data directory, anew where a start that lost its port left one, and writes the
// statements that the server runs at each start: our account. Its tmpdir is its own: two
// installations that share one break each other.
func (d sqlDir) fill(ctx context.Context, install string, args ...string) error {
	if err := d.clear(); err != nil {
		return err
	}
	account := fmt.Sprintf("CREATE USER IF NOT EXISTS '%[1]s'@'127.0.0.1' IDENTIFIED BY '%[2]s';\n"+
		"GRANT ALL PRIVILEGES ON *.* TO '%[1]s'@'127.0.0.1' WITH GRANT OPTION;\n", sqlUser,
		sqlPassword)
	if err := os.WriteFile(d.initFile(), []byte(account), 0o600); err != nil {
		return err
	}
	args = append([]string{"--no-defaults", "--datadir=" + d.data(), "--tmpdir=" + d.tmp()},
		args...)
	cmd := exec.CommandContext(ctx, install, append(args, runAsRoot()...)...)
	cmd.Dir = string(d)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("make its data directory: %w\n%s", err, out)
	}
	return nil
}

// clear makes the directory for temporary files and removes the data.
func (d sqlDir) clear() error {
	if err := os.MkdirAll(d.tmp(), 0o700); err != nil {
		return err
	}
	return os.RemoveAll(d.data())
}
