package servers

import (
	"context"
	"testing"
	"time"
)

// MariaDB starts a mariadbd for one test (2 s; a Suite shares one) and stops it at cleanup.
func MariaDB(tb testing.TB) *SQLServer {
	tb.Helper()
	return forTest(tb, "mariadb", StartMariaDB)
}

// StartMariaDB runs Debian's mariadbd with its data and log in dir and returns when it answers. The caller stops it.
// Where EnvExternalSQL is set, it is that server's handle instead.
func StartMariaDB(ctx context.Context, dir string) (*SQLServer, error) {
	if dsn, set := externalSQL(); set {
		return openExternal(ctx, dsn)
	}
	return startMariaDB(ctx, dir)
}

// OwnMariaDB is MariaDB for tests that fault it or change its settings: never an external server.
func OwnMariaDB(tb testing.TB) *SQLServer {
	tb.Helper()
	return forTest(tb, "mariadb", startMariaDB)
}

func startMariaDB(ctx context.Context, dir string) (*SQLServer, error) {
	server, err := program("mariadbd", "/usr/sbin/mariadbd", "/usr/bin/mariadbd", "/usr/local/bin/mariadbd", "/opt/homebrew/bin/mariadbd")
	if err != nil {
		return nil, err
	}
	install, err := program("mariadb-install-db", "/usr/bin/mariadb-install-db", "/usr/local/bin/mariadb-install-db", "/opt/homebrew/bin/mariadb-install-db")
	if err != nil {
		return nil, err
	}
	return startSQL(ctx, dir, sqlProgram{
		name:    "mariadbd",
		path:    server,
		timeout: 60 * time.Second,
		install: func(dir string) (string, []string) {
			// Its own tmpdir: two installations that share one break each other.
			return install, []string{
				"--no-defaults", "--datadir=" + sqlDir(dir).data(), "--tmpdir=" + sqlDir(dir).tmp(),
				"--auth-root-authentication-method=normal", "--skip-test-db",
			}
		},
	})
}
