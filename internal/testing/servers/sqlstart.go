package servers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/go-sql-driver/mysql"
)

// MariaDB starts a mariadbd for one test (2 s; a Suite shares one) and stops it at cleanup. One
// with arguments is never the server of EnvExternalSQL.
func MariaDB(tb testing.TB, args ...string) *SQLServer {
	tb.Helper()
	if len(args) == 0 {
		return forTest(tb, "mariadb", StartMariaDB)
	}
	return forTest(tb, "mariadb", func(ctx context.Context, dir string) (*SQLServer, error) {
		return startMariaDB(ctx, dir, args...)
	})
}

// StartMariaDB runs Debian's mariadbd with its data and log in dir. It returns when the server
// answers. The caller stops it. If EnvExternalSQL is set, it returns that server's handle instead.
func StartMariaDB(ctx context.Context, dir string) (*SQLServer, error) {
	return unlessExternal(ctx, dir, func(ctx context.Context, dir string) (*SQLServer, error) {
		return startMariaDB(ctx, dir)
	})
}

// StartMySQL runs the mysqld of scripts/server-fetch with its data and log in dir. It returns when
// the server answers. The caller stops it. If EnvExternalSQL is set, it returns that server's
// handle instead.
func StartMySQL(ctx context.Context, dir string) (*SQLServer, error) {
	return unlessExternal(ctx, dir, startMySQL)
}

// StartSQL runs the machine's MariaDB, or MySQL if EnvFetched names it, with its data and log in
// dir.
func StartSQL(ctx context.Context, dir string) (*SQLServer, error) {
	if isFetched("mysql") {
		return StartMySQL(ctx, dir)
	}
	return StartMariaDB(ctx, dir)
}

func startMariaDB(ctx context.Context, dir string, args ...string) (*SQLServer, error) {
	path, err := program("mariadbd")
	if err != nil {
		return nil, err
	}
	install, err := program("mariadb-install-db")
	if err != nil {
		return nil, err
	}
	return startSQL(ctx, path, sqlDir(dir), sqlTemplate{
		server: path, install: install,
		args: []string{"--auth-root-authentication-method=normal", "--skip-test-db"},
	}, args...)
}

func startMySQL(ctx context.Context, dir string) (*SQLServer, error) {
	path, err := fetched("mysql", "mysqld")
	if err != nil {
		return nil, err
	}
	return startSQL(ctx, path, sqlDir(dir), mysqlTemplate(path), mysqlArgs()...)
}

// noFilePriv disables the default, which names a missing directory of Debian's package.
const noFilePriv = "--secure-file-priv=NULL"

// mysqlArgs returns the arguments for every run of Oracle's server.
func mysqlArgs() []string {
	return []string{noFilePriv, "--mysqlx=OFF", "--performance-schema=OFF"}
}

// sqlDir is the directory of a SQL server's files.
type sqlDir string

func (d sqlDir) data() string     { return filepath.Join(string(d), "data") }
func (d sqlDir) tmp() string      { return filepath.Join(string(d), "tmp") }
func (d sqlDir) initFile() string { return filepath.Join(string(d), "init.sql") }

// startSQL starts a server with all files in dir. Its data are a copy of the template.
func startSQL(
	ctx context.Context, path string, dir sqlDir, template sqlTemplate, args ...string,
) (*SQLServer, error) {
	// The server reports its data directory without symbolic links.
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
		s.prepare = func(ctx context.Context) error { return dir.fill(ctx, template) }
		return s, nil
	})
}

// newSQL returns a server that has not started. It keeps the server's default durability, so
// benchmarks are realistic.
func newSQL(name, path string, dir sqlDir, port int, args ...string) *SQLServer {
	args = append([]string{
		"--no-defaults", "--datadir=" + dir.data(), "--tmpdir=" + dir.tmp(),
		"--port=" + strconv.Itoa(port), "--bind-address=127.0.0.1", "--skip-name-resolve",
		"--socket=" + filepath.Join(string(dir), "sql.sock"),
		"--pid-file=" + filepath.Join(string(dir), "sql.pid"),
		"--character-set-server=utf8mb4", "--max-connections=300", "--default-time-zone=+00:00",
	}, append(args, runAsRoot()...)...)
	server := &SQLServer{base: mysql.NewConfig()}
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

// runAsRoot returns the option that a server needs if the tests run as root. The server refuses to
// start without it.
func runAsRoot() []string {
	if os.Geteuid() == 0 {
		return []string{"--user=root"}
	}
	return nil
}

// fill copies the template to the data directory. It replaces the directory of a start that lost
// its port. It also writes the statements of each start, which create the tests' account.
func (d sqlDir) fill(ctx context.Context, t sqlTemplate) error {
	if err := errors.Join(d.clear(), d.writeAccount()); err != nil {
		return err
	}
	return t.copyTo(ctx, d)
}

func (d sqlDir) writeAccount() error {
	account := fmt.Sprintf("CREATE USER IF NOT EXISTS '%[1]s'@'127.0.0.1' IDENTIFIED BY '%[2]s';\n"+
		"GRANT ALL PRIVILEGES ON *.* TO '%[1]s'@'127.0.0.1' WITH GRANT OPTION;\n", sqlUser,
		sqlPassword)
	return os.WriteFile(d.initFile(), []byte(account), 0o600)
}

// clear creates the directory for temporary files and deletes the data.
func (d sqlDir) clear() error {
	if err := os.MkdirAll(d.tmp(), 0o700); err != nil {
		return err
	}
	return os.RemoveAll(d.data())
}
