package rig

import (
	"context"
	"database/sql"
	"net/url"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/require"
)

// servers are the settings that tell one kind of program where the servers are.
func (r *Rig) servers(t testing.TB, kind string, o Options) []string {
	t.Helper()
	redisAddr, amqpURL, dsn := r.Redis.Addr(), r.AMQP, r.DSN
	if o.Plain {
		dsn = r.plainAccount(t)
	}
	if o.Wired {
		redisAddr = r.wire(t, kind+"-redis", redisAddr)
		u, err := url.Parse(amqpURL)
		require.NoError(t, err)
		u.Host = r.wire(t, kind+"-rabbit", u.Host)
		cfg, err := mysql.ParseDSN(dsn)
		require.NoError(t, err)
		cfg.Addr = r.wire(t, kind+"-mysql", cfg.Addr)
		amqpURL, dsn = u.String(), cfg.FormatDSN()
	}
	return []string{"SECKILL_REDIS_ADDRS=" + redisAddr, "SECKILL_MYSQL_DSN=" + dsn, "SECKILL_AMQP_URL=" + amqpURL}
}

func (r *Rig) wire(t testing.TB, name, server string) string {
	t.Helper()
	if r.Wires == nil {
		r.Wires = make(map[string]*Proxy)
	}
	r.Wires[name] = NewProxy(t, server)
	return r.Wires[name].Addr
}

// plainAccount makes an account of the rights that an installation needs, and no more, and returns its DSN.
func (r *Rig) plainAccount(t testing.TB) string {
	t.Helper()
	cfg, err := mysql.ParseDSN(r.DSN)
	require.NoError(t, err)
	r.SQLDo(t, "CREATE USER IF NOT EXISTS 'plain'@'127.0.0.1' IDENTIFIED BY 'plain'")
	r.SQLDo(t, "GRANT ALL PRIVILEGES ON "+cfg.DBName+".* TO 'plain'@'127.0.0.1'")
	cfg.User, cfg.Passwd = "plain", "plain"
	return cfg.FormatDSN()
}

// SQLDo runs a statement as the administrator.
func (r *Rig) SQLDo(t testing.TB, statement string) {
	t.Helper()
	db, err := sql.Open("mysql", r.DSN)
	require.NoError(t, err)
	defer db.Close() //nolint:errcheck // the statement's own error counts
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 30*time.Second)
	defer cancel()
	_, err = db.ExecContext(ctx, statement)
	require.NoError(t, err, statement)
}
