package servers

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/assert"

	"flashsale.dev/seckill/internal/testing/must"
)

// EnvExternalSQL names the environment variable with the DSN of an external server. That server
// replaces the private MariaDB and MySQL. The DSN has go-sql-driver's form, and its database is
// ignored. The account must be allowed to create and drop databases named seckill_test_*. Tests
// change no other databases.
const EnvExternalSQL = "SECKILL_TEST_MYSQL_DSN"

// This is the private servers' account. It has all privileges and is reachable only over loopback
// TCP. It has a password, so programs log in as in production, with MySQL's caching_sha2_password
// included.
const (
	sqlUser     = "seckill"
	sqlPassword = "seckill"
)

// SQLServer is a private MariaDB or MySQL server, or an external one (see EnvExternalSQL).
type SQLServer struct {
	*Server
	base  *mysql.Config // login data; the database is not used
	names atomic.Int64

	filling sync.Mutex
	model   string // the database that NewCopy copies, "" before its first call

	// recovers is the time, in Unix nanoseconds, since when a group's member has been recovering.
	// It is 0 if the member is not recovering.
	recovers atomic.Int64
}

// Addr returns the server's address, host:port.
func (s *SQLServer) Addr() string { return s.base.Addr }

// DSN returns the data source name of database in go-sql-driver's form; "" stands for no database.
// The connection uses utf8mb4, the driver's default.
func (s *SQLServer) DSN(database string) string {
	config := s.base.Clone()
	config.DBName = database
	return config.FormatDSN()
}

// NewDatabase creates a database for one test and returns its DSN. The test's cleanup drops it if
// the server still runs.
func (s *SQLServer) NewDatabase(tb testing.TB) string {
	tb.Helper()
	name := must.Get(s.createDatabase(tb.Context()))(tb)
	tb.Cleanup(func() {
		if s.external || s.Running() { // otherwise the server's data directory is deleted
			assert.NoError(tb, s.DropDatabase(context.WithoutCancel(tb.Context()), name))
		}
	})
	return s.DSN(name)
}

// createDatabase creates an empty utf8mb4 database with a unique name.
func (s *SQLServer) createDatabase(ctx context.Context) (string, error) {
	name := fmt.Sprintf("seckill_test_%d_%d_%d", os.Getpid(), time.Now().UnixNano()%1e9,
		s.names.Add(1))
	return name, s.exec(ctx, "CREATE DATABASE "+name+" CHARACTER SET utf8mb4")
}

// DropDatabase drops a database that NewDatabase created.
func (s *SQLServer) DropDatabase(ctx context.Context, name string) error {
	if !strings.HasPrefix(name, "seckill_test_") {
		return fmt.Errorf("drop database %s: not one of ours", name)
	}
	return s.exec(ctx, "SET SESSION lock_wait_timeout = 20; DROP DATABASE IF EXISTS "+name)
}

// exec runs statements and ignores their results.
func (s *SQLServer) exec(ctx context.Context, statements string) error {
	ctx, cancel := context.WithTimeout(ctx, groupPatience)
	defer cancel()
	err := s.with(func(db *sql.DB) error {
		_, err := db.ExecContext(ctx, statements)
		return err
	})
	if err != nil {
		return fmt.Errorf("%s: %w", statements, err)
	}
	return nil
}

// row reads the only row of a query.
func (s *SQLServer) row(ctx context.Context, query string, into ...any) error {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	return s.with(func(db *sql.DB) error { return db.QueryRowContext(ctx, query).Scan(into...) })
}

// with opens a connection for one function.
func (s *SQLServer) with(work func(*sql.DB) error) error {
	config := s.base.Clone()
	config.DBName, config.MultiStatements = "", true
	config.Logger = &mysql.NopLogger{} // a failed connection during the start is normal
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return err
	}
	db := sql.OpenDB(connector)
	defer db.Close() // the error of work is the result
	return work(db)
}

// isReady returns nil when this server accepts the account. It detects another server on the same
// port.
func (s *SQLServer) isReady(ctx context.Context) error {
	var data string
	if err := s.row(ctx, "SELECT @@datadir", &data); err != nil {
		return err
	}
	if filepath.Clean(data) != s.data {
		return fmt.Errorf("another server answers, with its data in %s", data)
	}
	return nil
}

// unlessExternal returns the handle of the external server if one is set. That server must answer
// now.
func unlessExternal(
	ctx context.Context, dir string, start starter[*SQLServer],
) (*SQLServer, error) {
	dsn := os.Getenv(EnvExternalSQL)
	if dsn == "" {
		return start(ctx, dir)
	}
	config, err := mysql.ParseDSN(dsn)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", EnvExternalSQL, err)
	}
	server := &SQLServer{base: config, Server: &Server{name: EnvExternalSQL, external: true}}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if err := server.with(func(db *sql.DB) error { return db.PingContext(ctx) }); err != nil {
		return nil, fmt.Errorf("reach %s: %w", EnvExternalSQL, err)
	}
	return server, nil
}
