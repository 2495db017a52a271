package servers

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// EnvMySQLDir names the directory that scripts/mysql-fetch unpacked MySQL into, where it is not the default.
const EnvMySQLDir = "SECKILL_TEST_MYSQL_DIR"

// MySQL starts a real Oracle mysqld for one test (some seconds; a Suite shares one) and stops it at cleanup.
func MySQL(tb testing.TB) *SQLServer {
	tb.Helper()
	return forTest(tb, "mysql", StartMySQL)
}

// StartMySQL runs the mysqld that scripts/mysql-fetch unpacked, with its data and log in dir, and returns when it answers.
// The caller stops it. Where EnvExternalSQL is set, it is that server's handle instead.
func StartMySQL(ctx context.Context, dir string) (*SQLServer, error) {
	if dsn, set := externalSQL(); set {
		return openExternal(ctx, dsn)
	}
	path, err := mysqldPath()
	if err != nil {
		return nil, err
	}
	return startSQL(ctx, dir, sqlProgram{
		name: "mysqld",
		path: path,
		// No secure-file-priv: the default names a directory of Debian's package that is not there.
		args:    []string{"--secure-file-priv=NULL", "--mysqlx=OFF", "--performance-schema=OFF"},
		timeout: 90 * time.Second,
		install: func(dir string) (string, []string) {
			return path, []string{
				"--no-defaults", "--initialize-insecure", "--datadir=" + sqlDir(dir).data(),
				"--tmpdir=" + sqlDir(dir).tmp(), "--secure-file-priv=NULL",
			}
		},
	})
}

// mysqldPath is the start script that scripts/mysql-fetch leaves beside what it unpacked, last of all.
func mysqldPath() (string, error) {
	dir := os.Getenv(EnvMySQLDir)
	if dir == "" {
		cache, err := cacheDir()
		if err != nil {
			return "", fmt.Errorf("find MySQL: %w", err)
		}
		dir = filepath.Join(cache, "seckill", "mysql")
	}
	return program("mysqld", filepath.Join(dir, "current", "run-mysqld"))
}

// cacheDir is the XDG cache directory on every system, as in scripts/mysql-fetch.
func cacheDir() (string, error) {
	if dir := os.Getenv("XDG_CACHE_HOME"); dir != "" {
		return dir, nil
	}
	home, err := os.UserHomeDir()
	return filepath.Join(home, ".cache"), err
}
