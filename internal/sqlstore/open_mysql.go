package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"maps"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
	gormmysql "gorm.io/driver/mysql"
	"gorm.io/gorm"

	"flashsale.dev/seckill/internal/rawconn"
	"flashsale.dev/seckill/internal/sqlstore/primary"
)

// Deadlines of a connection where the DSN sets none; they bound the detection of a dead server.
const (
	dialTimeout = 3 * time.Second
	ioTimeout   = 10 * time.Second
	// sessionTimeout is how long the server keeps a connection without statements. It bounds how
	// long a paused or disconnected process blocks others with a locked goods row.
	sessionTimeout = 10 * time.Second
	// idleTime is well below sessionTimeout, so that the server never ends a pooled connection.
	idleTime = 4 * time.Second
	maxConns = 32
)

// sessionSQL runs on each new connection. Decisions are taken under the goods row's lock, so the
// gap locks of REPEATABLE READ would only add deadlocks.
const sessionSQL = "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED"

// sessionVars returns the variables of each new connection. Text that is too long is an error then
// and not truncated. A wait for the lock of a row ends with error 1205 before the connection's own
// deadline. So does one for the lock of a table that a backup or an ALTER holds. Without
// autocommit, which a server may turn off, a statement outside a transaction would be undone when
// its connection ends.
func sessionVars() map[string]string {
	const mode = "'ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION'"
	return map[string]string{
		"autocommit":               "1",
		"sql_mode":                 mode,
		"innodb_lock_wait_timeout": "5",
		"lock_wait_timeout":        "5",
		"wait_timeout":             strconv.Itoa(int(sessionTimeout.Seconds())),
	}
}

// openMySQL prepares three pools: for the service, for migrations, and for the replica where one is
// configured.
func openMySQL(dsn, readDSN string) (*Store, error) {
	cfg, err := mysqlConfig(dsn)
	if err != nil {
		return nil, err
	}
	pool, err := openPool(cfg)
	if err != nil {
		return nil, err
	}
	limitPool(pool)
	addr := strings.Join(primary.Addresses(cfg), ",")
	store, err := newStore(pool, mysqlDialector(pool, addr))
	if err != nil {
		return nil, err
	}
	store.clock, store.addr = &serverClock{}, addr
	schema, err := schemaConnector(cfg)
	if err != nil {
		return nil, errors.Join(err, pool.Close())
	}
	store.schema = sql.OpenDB(schema)
	// Migrations are rare, so the pool keeps no connection between them.
	store.schema.SetMaxIdleConns(0)
	if store.replica, err = openReplica(readDSN); err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return store, nil
}

// AddrOf returns the addresses of a DSN's servers, for operators; "" if it is not one of MySQL.
func AddrOf(dsn string) string {
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		return ""
	}
	return strings.Join(primary.Addresses(cfg), ",")
}

// CheckDSN returns the problem of a DSN; nil for those of SQLite and for none.
func CheckDSN(dsn string) error {
	if _, sqlite := SQLiteFile(dsn); sqlite || dsn == "" {
		return nil
	}
	_, err := mysqlConfig(dsn)
	return err
}

// limitPool bounds a pool. More connections would only wait for the hot rows. A connection ends
// after half an hour, so that the pool returns to a server that is back after a failover.
func limitPool(pool *sql.DB) {
	pool.SetMaxOpenConns(maxConns)
	pool.SetMaxIdleConns(maxConns)
	pool.SetConnMaxIdleTime(idleTime)
	pool.SetConnMaxLifetime(30 * time.Minute)
}

// dialector names the servers in the errors of GORM.
type dialector struct {
	*gormmysql.Dialector
	addr string
}

// mysqlDialector does not query the server's version, because the server may be down.
func mysqlDialector(pool *sql.DB, addr string) gorm.Dialector {
	cfg := &gormmysql.Config{Conn: pool, SkipInitializeWithVersion: true}
	return dialector{&gormmysql.Dialector{Config: cfg}, addr}
}

// Translate replaces GORM's own translation, which would lose the key's name of a duplicate.
func (d dialector) Translate(err error) error { return nameServer(d.addr, err) }

// translated names the server in an error that GORM did not translate.
func translated(tx *gorm.DB, err error) error {
	if d, ok := tx.Dialector.(dialector); ok {
		return d.Translate(err)
	}
	return err
}

// nameServer adds the address to the driver's error of a broken connection, and to that of a
// deadline. Neither has one.
func nameServer(addr string, err error) error {
	if _, known := errors.AsType[*net.OpError](err); known {
		return err
	}
	if errors.Is(err, mysql.ErrInvalidConn) || errors.Is(err, driver.ErrBadConn) ||
		errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%s: %w", addr, err)
	}
	return err
}

// openPool connects to the server that accepts writes, or to the only one listed.
func openPool(cfg *mysql.Config) (*sql.DB, error) {
	connector, err := primary.NewConnector(cfg)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(sessionConnector{connector}), nil
}

// schemaConnector connects as openPool does, for migrations.
func schemaConnector(cfg *mysql.Config) (driver.Connector, error) {
	cfg = cfg.Clone()
	// A migration of a large table takes longer than any other statement may.
	cfg.ReadTimeout = 0
	delete(cfg.Params, "wait_timeout") // a migration holds its lock without statements
	delete(cfg.Params, "lock_wait_timeout")
	connector, err := primary.NewConnector(cfg)
	if err != nil {
		return nil, err
	}
	return repeatConnector{sessionConnector{connector}}, nil
}

// mysqlConfig parses a DSN and sets the options that the store depends on. The driver interpolates
// arguments (one round trip instead of two) and rejects character sets for which quoting is unsafe.
func mysqlConfig(dsn string) (*mysql.Config, error) {
	const form = "write user:password@tcp(host:3306)/database"
	cfg, err := mysql.ParseDSN(dsn)
	switch {
	case err != nil && strings.HasPrefix(err.Error(), "default addr for network"):
		// The driver quotes the network: without an @ that is the user and the password.
		return nil, errors.New("the DSN has no tcp(host:port): " + form)
	case err != nil:
		return nil, fmt.Errorf("%w: %s", err, form)
	}
	if cfg.DBName == "" {
		return nil, errors.New("the DSN names no database: " + form)
	}
	cfg.Loc, cfg.ParseTime = time.UTC, true // goose's table has a timestamp
	// ClientFoundRows counts the rows that a statement found, so that an update to the same values
	// is no miss. RejectReadOnly closes connections to a demoted server at once.
	cfg.InterpolateParams, cfg.ClientFoundRows, cfg.RejectReadOnly = true, true, true
	cfg.Timeout = cmp.Or(cfg.Timeout, dialTimeout)
	cfg.ReadTimeout = cmp.Or(cfg.ReadTimeout, ioTimeout)
	cfg.WriteTimeout = cmp.Or(cfg.WriteTimeout, ioTimeout)
	cfg.Logger = &mysql.NopLogger{}
	cfg.DialFunc = rawconn.With(new(net.Dialer).DialContext)
	if cfg.Params == nil {
		cfg.Params = make(map[string]string)
	}
	maps.Copy(cfg.Params, sessionVars())
	return cfg, nil
}

// sessionConnector runs sessionSQL on each new connection.
type sessionConnector struct{ driver.Connector }

// Connect opens a connection and prepares its session.
func (s sessionConnector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := s.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := conn.(driver.ExecerContext).ExecContext(ctx, sessionSQL, nil); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return conn, nil
}
