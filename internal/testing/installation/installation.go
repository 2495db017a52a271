package installation

import (
	"context"
	"database/sql"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/auth"
	"flashsale.dev/seckill/internal/loadgen/apiclient"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/testing/apicheck"
	"flashsale.dev/seckill/internal/testing/must"
	"flashsale.dev/seckill/internal/testing/netfault"
	"flashsale.dev/seckill/internal/testing/servers"
)

// Secret signs the tokens of every installation.
const Secret = "a secret that only the tests know, long enough"

// MerchantID is who puts up the installation's sales.
const MerchantID = 7

// Options of an installation; zero values give one of each program.
type Options struct {
	APIs, Consumers int
	Topology        Topology // which servers are several
	DSN             string   // of a fresh database
	Redis           []string // lines of redis.conf
	Env             []string // further settings of all programs, NAME=value
	OwnRabbit       bool     // a broker of the installation's own, to be killed or emptied
	Wired           bool     // the programs reach the servers over the installation's Wires
	Failover        bool     // Redis has a Replica, and three Sentinels that would promote it
	OwnSQL          bool     // a MariaDB of its own, or a group, on a Disk that can be full
	BusWires        bool     // the nodes of a Redis Cluster can be cut off from each other
	Plain           bool     // programs' account may not write to a MySQL that is read-only
	Hosts           bool     // each API listens on a loopback address of its own
}

// Installation is an installation that is up.
type Installation struct {
	Redis     *servers.RedisServer   // of a Cluster the master that keeps the sale: see Aim
	Cluster   *servers.RedisNodes    // nil where Redis is one
	Replica   *servers.RedisServer   // follows Redis over the wire "replica-redis": see Failover
	Sentinels []*servers.RedisServer // know Redis as servers.SentinelMaster
	Rabbit    *servers.RabbitServer  // of a cluster the node that AimRabbit chose
	Rabbits   *servers.RabbitNodes   // the cluster's; nil where there is one broker
	SQL       *servers.SQLServer     // of a Group its first primary; nil where the DSN was given
	Group     *servers.SQLGroup      // nil where MySQL is one
	AMQP      string                 // the virtual host's URL, on the first node of a cluster
	DSN       string
	Disk      *Disk // SQL's, where it is the installation's own
	APIs      []*Program
	Consumers []*Program
	Tokens    *auth.Tokens
	Wires     map[string]*netfault.Proxy // "api-redis", "consumer-mysql" and so on: see Wired

	apiEnv, consumerEnv []string // settings of those that are there, and of those that join
	hosts               bool
	db                  *sql.DB
}

// Start builds the programs, migrates the database and starts everything; all of it ends with the
// test.
func Start(t testing.TB, suite *servers.Suite, o Options) *Installation {
	r := &Installation{DSN: o.DSN}
	r.startRedis(t, o)
	r.startRabbit(t, suite, o)
	if r.DSN == "" {
		r.startSQL(t, suite, o)
	}
	if binaries(t); o.Failover { // last of the servers: see the sentinels' failover-timeout
		r.watchOver(t, o.Redis)
	}
	r.db = must.Get(sql.Open("mysql", r.DSN))(t)
	// after a failover a connection that was kept would lead to the old primary
	r.db.SetMaxIdleConns(-1)
	t.Cleanup(func() { _ = r.db.Close() })
	r.Tokens = must.Get(auth.New([]byte(Secret), 0, time.Now))(t)
	env := append([]string{"SECKILL_JWT_SECRET=" + Secret, "SECKILL_LOG_FORMAT=text"}, o.Env...)
	Run(t, "seckillctl", append(r.servers(t, "", Options{}), env...), "migrate")
	r.consumerEnv, r.apiEnv = append(r.servers(t, "consumer", o), env...),
		append(r.servers(t, "api", o), env...)
	r.hosts = o.Hosts
	for range max(1, o.Consumers) {
		r.JoinConsumer(t)
	}
	for range max(1, o.APIs) {
		r.JoinAPI(t)
	}
	return r
}

// Base is the URL of an API.
func (r *Installation) Base(i int) string { return "http://" + r.APIs[i%len(r.APIs)].Addr }

// Bases are the URLs of all APIs.
func (r *Installation) Bases() []string {
	bases := make([]string, len(r.APIs))
	for i := range bases {
		bases[i] = r.Base(i)
	}
	return bases
}

// Merchant calls the first API as the installation's merchant.
func (r *Installation) Merchant(t testing.TB) apiclient.Client {
	return r.as(t, seckill.Merchant, MerchantID)
}

// Operator calls the first API as an operator.
func (r *Installation) Operator(t testing.TB) apiclient.Client {
	return r.as(t, seckill.Operator, 1)
}

// Buyer calls the first API as a buyer.
func (r *Installation) Buyer(t testing.TB, id int64) apiclient.Client {
	return r.as(t, seckill.Buyer, id)
}

func (r *Installation) as(t testing.TB, role seckill.Role, id int64) apiclient.Client {
	token := must.Get(r.Tokens.Sign(seckill.Actor{ID: id, Role: role}, time.Hour))(t)
	return apiclient.Client{
		Base: r.Base(0), Token: token, HTTP: apicheck.Client(t, apiclient.NewHTTP(4)),
	}
}

// BuyerToken signs a buyer's token, with a name and a phone number.
func (r *Installation) BuyerToken(id int64) (string, error) {
	return r.Tokens.Sign(seckill.Actor{
		ID: id, Role: seckill.Buyer, Name: fmt.Sprintf("买家 %d", id), Phone: "+8613800000000",
	}, time.Hour)
}

// PutUp puts up a sale that is on, without a limit of random paths that would be felt, and returns
// its goods id.
func (r *Installation) PutUp(t testing.TB, units, perBuyer int64) string {
	return r.PutUpFor(t, units, perBuyer, time.Now().Add(-time.Minute), time.Now().Add(time.Hour))
}

// PutUpFor is PutUp with a window.
func (r *Installation) PutUpFor(t testing.TB, units, perBuyer int64, start, end time.Time) string {
	goods := must.Get(r.Merchant(t).PutUp(t.Context(), apiclient.NewSale{
		Title: "a kettle", Price: 1999, Stock: units, StartAt: start.UTC(), EndAt: end.UTC(),
		PerBuyerLimit: perBuyer,
		Rate: &apiclient.Rate{
			PermitsPerSecond: 100_000, MaxBurstSeconds: 1, MaxWaitMillis: 1000,
		},
	}))(t)
	r.Aim(t, goods)
	return goods
}

// Drained waits until nothing of a sale is pending, and returns its ledger.
func (r *Installation) Drained(t testing.TB, goods string, within time.Duration) apiclient.Ledger {
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	l, err := r.Merchant(t).Drained(ctx, goods)
	require.NoError(t, err, "the ledger when patience ended: %+v", l)
	return l
}
