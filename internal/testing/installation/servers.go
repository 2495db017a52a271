package installation

import (
	"net/url"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"flashsale.dev/seckill/internal/testing/must"
	"flashsale.dev/seckill/internal/testing/netfault"
)

// addressSettings returns the settings with the servers' addresses for one kind of program: "api"
// or "consumer".
func (r *Installation) addressSettings(t testing.TB, kind string, o Options) []string {
	redisAddr, amqpURL, dsn := r.redisAddrs(), strings.Join(r.amqpURLs(t), ","), r.DSN
	if o.PlainAccount {
		dsn = r.plainAccount(t)
	}
	dsn = r.sqlDSN(t, dsn, kind, o.Wired)
	if o.Wired {
		redisAddr = r.redisWire(t, kind)
		u := must.Get(url.Parse(r.AMQP))(t)
		u.Host = r.wire(t, kind+"-rabbit", r.amqpHosts(t)...)
		amqpURL = u.String()
	}
	return []string{
		"SECKILL_REDIS_ADDRS=" + redisAddr, "SECKILL_REDIS_SENTINEL_MASTER=" + r.masterName(),
		"SECKILL_MYSQL_DSN=" + dsn, "SECKILL_AMQP_URL=" + amqpURL,
	}
}

// sqlDSN returns the DSN for one kind of program.
func (r *Installation) sqlDSN(t testing.TB, dsn, kind string, wired bool) string {
	cfg := must.Get(mysql.ParseDSN(dsn))(t)
	switch {
	case r.SQL != nil:
		cfg.Net, cfg.Addr = "tcp", r.sqlAddrs(t, kind, wired)
	case wired:
		cfg.Addr = r.wire(t, kind+"-mysql", cfg.Addr)
	}
	return cfg.FormatDSN()
}

// redisWire opens a wire for a kind of program, to Redis or to all nodes of a cluster.
func (r *Installation) redisWire(t testing.TB, kind string) string {
	if r.Cluster == nil {
		return r.wire(t, kind+"-redis", r.redisAddrs())
	}
	wire := netfault.StartCluster(t, clusterHosts[kind], r.Cluster.Addrs()...)
	return r.addWire(kind+"-redis", wire)
}

// clusterHosts holds the hosts at which each kind of program finds the Redis Cluster's nodes over
// its wire.
var clusterHosts = map[string]string{"api": "127.0.0.2", "consumer": "127.0.0.3"}

// wire opens a proxy to servers and returns its address.
func (r *Installation) wire(t testing.TB, name string, servers ...string) string {
	return r.addWire(name, netfault.Start(t, servers...))
}

// addWire makes a proxy one of the installation's Wires and returns its address.
func (r *Installation) addWire(name string, wire *netfault.Proxy) string {
	if r.Wires == nil {
		r.Wires = make(map[string]*netfault.Proxy)
	}
	r.Wires[name] = wire
	return wire.Addr
}

// plainAccount creates an account with only the rights that an installation needs, and returns its
// DSN.
func (r *Installation) plainAccount(t testing.TB) string {
	cfg := must.Get(mysql.ParseDSN(r.DSN))(t)
	r.ExecSQL(t, "CREATE USER IF NOT EXISTS 'plain'@'127.0.0.1' IDENTIFIED BY 'plain'")
	r.ExecSQL(t, "GRANT ALL PRIVILEGES ON "+cfg.DBName+".* TO 'plain'@'127.0.0.1'")
	cfg.User, cfg.Passwd = "plain", "plain"
	return cfg.FormatDSN()
}
