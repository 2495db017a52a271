package servers

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
)

// The private servers' account: may do everything, reachable over loopback TCP only. It has a password so that what is
// tested logs in as it would in earnest (MySQL's caching_sha2_password included).
const (
	sqlUser     = "seckill"
	sqlPassword = "seckill"
)

// SQLServer is a private MariaDB or MySQL server, or an external one (see EnvExternalSQL).
type SQLServer struct {
	*Server
	base  *mysql.Config // how to log in; its database is not used
	dir   sqlDir        // a group's member's
	names atomic.Int64

	recovers atomic.Int64 // since when a group's member has been recovering, in Unix nanoseconds; 0 where it is not
}

// Addr is the server's address, host:port.
func (s *SQLServer) Addr() string { return s.base.Addr }

// DSN is the data source name of database in go-sql-driver's form; "" for no database. The connection speaks utf8mb4, the
// driver's default.
func (s *SQLServer) DSN(database string) string {
	config := s.base.Clone()
	config.DBName = database
	return config.FormatDSN()
}

// NewDatabase creates a database for one test and returns its DSN; it is dropped at the test's cleanup, where the server still runs.
func (s *SQLServer) NewDatabase(tb testing.TB) string {
	tb.Helper()
	name, err := s.CreateDatabase(tb.Context())
	if err != nil {
		tb.Fatalf("servers: %v", err)
	}
	tb.Cleanup(func() {
		if !s.external && !s.proc.running() {
			return // its data goes with the server
		}
		if err := s.DropDatabase(context.WithoutCancel(tb.Context()), name); err != nil {
			tb.Errorf("servers: %v", err)
		}
	})
	return s.DSN(name)
}

// CreateDatabase makes an empty utf8mb4 database that nobody else has and returns its name.
func (s *SQLServer) CreateDatabase(ctx context.Context) (string, error) {
	name := fmt.Sprintf("seckill_test_%d_%d_%d", os.Getpid(), time.Now().UnixNano()%1e9, s.names.Add(1))
	if err := s.exec(ctx, "CREATE DATABASE "+name+" CHARACTER SET utf8mb4"); err != nil {
		return "", fmt.Errorf("create database %s: %w", name, err)
	}
	return name, nil
}

// DropDatabase removes a database that CreateDatabase made.
func (s *SQLServer) DropDatabase(ctx context.Context, name string) error {
	if !strings.HasPrefix(name, "seckill_test_") {
		return fmt.Errorf("drop database %s: not one of ours", name)
	}
	if err := s.exec(ctx, "SET SESSION lock_wait_timeout = 20; DROP DATABASE IF EXISTS "+name); err != nil {
		return fmt.Errorf("drop database %s: %w", name, err)
	}
	return nil
}

func (s *SQLServer) exec(ctx context.Context, statements string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	config := s.base.Clone()
	config.DBName, config.MultiStatements = "", true
	return withSQL(ctx, config, func(db *sql.DB) error {
		_, err := db.ExecContext(ctx, statements)
		return err
	})
}

// withSQL opens a connection of its own for one piece of work.
func withSQL(ctx context.Context, config *mysql.Config, work func(*sql.DB) error) error {
	config.Logger = &mysql.NopLogger{} // a server that is not up yet is no news
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return err
	}
	db := sql.OpenDB(connector)
	defer db.Close() // the work's own error counts
	return work(db)
}

// askSQL says nil when the server whose data lies in dir, and not another that was quicker to the port, takes our account.
func askSQL(ctx context.Context, config *mysql.Config, dir string) error {
	return withSQL(ctx, config.Clone(), func(db *sql.DB) error {
		var data string
		if err := db.QueryRowContext(ctx, "SELECT @@datadir").Scan(&data); err != nil {
			return err
		}
		if filepath.Clean(data) != filepath.Clean(dir) {
			return fmt.Errorf("somebody else's server answers, with its data in %s", data)
		}
		return nil
	})
}
