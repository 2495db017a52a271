package installation

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
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
const Secret = "a secret that only the tests know and long enough"

// MerchantID owns the installation's sales.
const MerchantID = 7

// Options configure an installation. Zero values start one of each program.
type Options struct {
	APIs, Consumers int
	Topology        Topology // the servers that run as clusters
	DSN             string   // a fresh database
	Redis           []string // lines of redis.conf
	Env             []string // further settings of all programs, NAME=value
	OwnRabbit       bool     // a private broker, for kills and data loss
	Wired           bool     // the programs reach the servers over the installation's Wires
	Failover        bool     // Redis has a Replica, and three Sentinels for failover
	OwnSQL          bool     // a private MariaDB or group on a Disk that a test can fill
	BusWires        bool     // allows partitions between nodes of a Redis Cluster
	PlainAccount    bool     // programs' account may not write to a MySQL that is read-only
	Hosts           bool     // each API listens on a loopback address of its own
	Programs        string   // the folder of another build of the programs
}

// Installation is a running installation.
type Installation struct {
	Redis     *servers.RedisServer   // in a Cluster the sale's master: see SelectRedis
	Cluster   *servers.RedisNodes    // nil for a single Redis
	Replica   *servers.RedisServer   // follows Redis over the wire "replica-redis": see Failover
	Sentinels []*servers.RedisServer // know Redis as servers.SentinelMaster
	Rabbit    *servers.RabbitServer  // in a cluster the node that SelectRabbit chose
	Rabbits   *servers.RabbitNodes   // nil for a single broker
	SQL       *servers.SQLServer     // in a Group its first primary; nil if DSN was given
	Group     *servers.SQLGroup      // nil for a single MySQL
	AMQP      string                 // the virtual host's URL, on a cluster's first node
	DSN       string
	Disk      *Disk // SQL's private disk, or nil
	APIs      []*Program
	Consumers []*Program
	Tokens    *auth.Tokens
	Wires     map[string]*netfault.Proxy // "api-redis", "consumer-mysql" and so on: see Wired

	apiEnv, consumerEnv []string // settings of running and of joining programs
	hosts               bool
	programs            string // see Options
	db                  *sql.DB
}

// Start builds the programs, migrates the database and starts all servers and programs. The test's
// end stops them.
func Start(t testing.TB, suite *servers.Suite, o Options) *Installation {
	r := &Installation{DSN: o.DSN, programs: o.Programs}
	r.startRedis(t, o)
	r.startRabbit(t, suite, o)
	if r.DSN == "" {
		r.startSQL(t, suite, o)
	}
	if binaries(t); o.Failover { // after all servers: see the sentinels' failover-timeout
		r.addSentinels(t, o.Redis)
	}
	r.db = must.Get(sql.Open("mysql", r.DSN))(t)
	// After a failover an idle connection would reach the old primary.
	r.db.SetMaxIdleConns(-1)
	t.Cleanup(func() { _ = r.db.Close() })
	r.Tokens = must.Get(auth.New([]byte(Secret), 0, time.Now))(t)
	env := append([]string{"SECKILL_JWT_SECRET=" + Secret, "SECKILL_LOG_FORMAT=text"}, o.Env...)
	out, err := tryFile(t, programFile(t, o.Programs, "seckillctl"),
		append(r.addressSettings(t, "", Options{}), env...), "migrate")
	require.NoError(t, err, "%s", out)
	r.consumerEnv, r.apiEnv = append(r.addressSettings(t, "consumer", o), env...),
		append(r.addressSettings(t, "api", o), env...)
	r.hosts = o.Hosts
	for range max(1, o.Consumers) {
		r.JoinConsumer(t)
	}
	for range max(1, o.APIs) {
		r.JoinAPI(t)
	}
	return r
}

// Base returns the URL of an API.
func (r *Installation) Base(i int) string { return "http://" + r.APIs[i%len(r.APIs)].Addr }

// Bases returns the URLs of all APIs.
func (r *Installation) Bases() []string {
	bases := make([]string, len(r.APIs))
	for i := range bases {
		bases[i] = r.Base(i)
	}
	return bases
}

// Merchant returns a client of the first API with the installation's merchant as caller.
func (r *Installation) Merchant(t testing.TB) apiclient.Client {
	return r.as(t, seckill.Merchant, MerchantID)
}

// Operator returns a client of the first API with an operator as caller.
func (r *Installation) Operator(t testing.TB) apiclient.Client {
	return r.as(t, seckill.Operator, 1)
}

// Buyer returns a client of the first API with a buyer as caller.
func (r *Installation) Buyer(t testing.TB, id int64) apiclient.Client {
	return r.as(t, seckill.Buyer, id)
}

func (r *Installation) as(t testing.TB, role seckill.Role, id int64) apiclient.Client {
	token := must.Get(r.Tokens.Sign(seckill.Actor{ID: strconv.FormatInt(id, 10), Role: role},
		time.Hour))(t)
	client := apiclient.NewHTTP(4)
	if r.programs == "" { // another build has another document
		client = apicheck.Client(t, client)
	}
	return apiclient.Client{Base: r.Base(0), Token: token, HTTP: client}
}

// BuyerToken signs a buyer's token with a name and a phone number.
func (r *Installation) BuyerToken(id int64) (string, error) {
	return r.Tokens.Sign(seckill.Actor{
		ID: strconv.FormatInt(id, 10), Role: seckill.Buyer, Name: fmt.Sprintf("买家 %d", id),
		Phone: "+8613800000000",
	}, time.Hour)
}

// PutUp creates and exposes an ongoing sale and returns its goods id. Its rate of random paths is
// too high to limit a test.
func (r *Installation) PutUp(t testing.TB, units, perBuyer int64) string {
	return r.PutUpFor(t, units, perBuyer, time.Now().Add(-time.Minute), time.Now().Add(time.Hour))
}

// PutUpFor works as PutUp with a given period.
func (r *Installation) PutUpFor(t testing.TB, units, perBuyer int64, start, end time.Time) string {
	goods := must.Get(r.TryPutUpFor(t, units, perBuyer, start, end))(t)
	r.SelectRedis(t, goods)
	return goods
}

// TryPutUpFor works as PutUpFor, and returns an error of the API.
func (r *Installation) TryPutUpFor(
	t testing.TB, units, perBuyer int64, start, end time.Time,
) (goods string, err error) {
	return r.Merchant(t).PutUp(t.Context(), apiclient.NewSale{
		Title: "a kettle", Price: 1999, Stock: units, StartAt: start.UTC(), EndAt: end.UTC(),
		PerBuyerLimit: perBuyer,
		Rate: &apiclient.Rate{
			PermitsPerSecond: 100_000, MaxBurstSeconds: 1, MaxWaitMillis: 1000,
		},
	})
}

// Number returns a goods id as a number.
func Number(t testing.TB, goods string) int64 {
	return must.Get(strconv.ParseInt(goods, 10, 64))(t)
}

// Drained waits until a sale has no pending orders, and returns its ledger.
func (r *Installation) Drained(t testing.TB, goods string, within time.Duration) apiclient.Ledger {
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	l, err := r.Merchant(t).Drained(ctx, goods)
	require.NoError(t, err, "the ledger when patience ended: %+v", l)
	require.Zero(t, l.Pending, "the ledger when patience ended: %+v", l)
	return l
}
