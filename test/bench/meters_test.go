package bench

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/app/connect"
	"flashsale.dev/seckill/internal/testing/installation"
)

// spent is what an installation did between two looks: seconds of processor, counts and bytes. Names are those of the
// constants below; what is not known is not in it.
type spent map[string]float64

// The names of a spent.
const (
	wall         = "seconds"
	asking       = "seconds of requests"
	apiCPU       = "api s"
	redisCPU     = "redis s"
	rabbitCPU    = "rabbitmq s"
	consumerCPU  = "consumer s"
	mysqlCPU     = "mysql s"
	redisCalls   = "redis calls"
	reserveTrips = "reserve trips"
	travellers   = "reservations in them"
	tripSeconds  = "their seconds"
	permitCalls  = "calls of the limiter"
	confirms     = "confirms"
	confirmTime  = "their wait"
	messages     = "messages"
	batches      = "transactions"
	batchOrders  = "orders in them"
	batchTime    = "their time"
	redisIn      = "bytes to redis"
	redisOut     = "bytes from redis"
	rabbitIn     = "bytes to rabbitmq"
	rabbitOut    = "bytes from rabbitmq"
	mysqlIn      = "bytes to mysql"
	mysqlOut     = "bytes from mysql"
	redo         = "redo bytes"
	loopback     = "bytes on loopback"
)

func (s spent) plus(o spent) spent {
	sum := spent{}
	for _, one := range []spent{s, o} {
		for name, x := range one {
			sum[name] += x
		}
	}
	return sum
}

// meters reads what a rig has spent.
type meters struct {
	*installation.Rig
	b      testing.TB
	client redis.UniversalClient
}

func newMeters(b testing.TB, r *installation.Rig) meters {
	b.Helper()
	m := meters{r, b, connect.Redis([]string{r.Redis.Addr()}, "")}
	b.Cleanup(func() { _ = m.client.Close() })
	return m
}

// over runs work and gives what it made the installation spend.
func (m meters) over(work func()) spent {
	m.b.Helper()
	before := m.read()
	work()
	after := m.read()
	for name, x := range before {
		after[name] -= x
	}
	return after
}

func (m meters) read() spent {
	m.b.Helper()
	s := spent{
		wall: float64(time.Now().UnixNano()) / 1e9, redisCPU: usedBy(m.Redis.Pid()).Seconds(),
		rabbitCPU: usedBy(m.Rabbit.Pid()).Seconds(), mysqlCPU: usedBy(m.SQL.Pid()).Seconds(),
	}
	for _, p := range m.APIs {
		s[apiCPU] += usedBy(p.Pid()).Seconds()
		m.scrape(s, p, map[string]string{
			"seckill_reserve_group_buyers_count": reserveTrips, "seckill_reserve_group_buyers_sum": travellers,
			"seckill_reserve_duration_seconds_sum": tripSeconds, `seckill_publishes_total{outcome="confirmed"}`: messages,
			"seckill_confirm_duration_seconds_sum": confirmTime, "seckill_confirm_duration_seconds_count": confirms,
			`seckill_limiter_events_total{event="redis_call",rule="randomPath"}`: permitCalls,
		})
	}
	for _, p := range m.Consumers {
		s[consumerCPU] += usedBy(p.Pid()).Seconds()
		m.scrape(s, p, map[string]string{
			"seckill_batch_orders_count": batches, "seckill_batch_orders_sum": batchOrders, "seckill_batch_duration_seconds_sum": batchTime,
		})
	}
	m.bytes(s)
	m.redis(s)
	m.mysql(s)
	return s
}

// scrape adds a program's metrics.
func (m meters) scrape(s spent, p *installation.Program, names map[string]string) {
	m.b.Helper()
	resp, err := http.Get("http://" + p.OpsAddr() + "/metrics") //nolint:noctx // loopback
	require.NoError(m.b, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(m.b, err)
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if what, wanted := names[name]; wanted {
			s[what] += number(m.b, value)
		}
	}
}

func number(b testing.TB, text string) float64 {
	b.Helper()
	n, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	require.NoError(b, err)
	return n
}

// redis adds what Redis counts itself; its own tellings of it are small beside a rush.
func (m meters) redis(s spent) {
	m.b.Helper()
	text, err := m.client.Info(context.WithoutCancel(m.b.Context()), "commandstats").Result()
	require.NoError(m.b, err)
	for _, found := range regexp.MustCompile(`cmdstat_(?:evalsha|eval|xdel):calls=(\d+)`).FindAllStringSubmatch(text, -1) {
		s[redisCalls] += number(m.b, found[1])
	}
	stats, err := m.client.Info(context.WithoutCancel(m.b.Context()), "stats").Result()
	require.NoError(m.b, err)
	s[redisIn], s[redisOut] = field(m.b, stats, "total_net_input_bytes:"), field(m.b, stats, "total_net_output_bytes:")
}

func field(b testing.TB, text, name string) float64 {
	b.Helper()
	_, rest, found := strings.Cut(text, name)
	require.True(b, found, name)
	value, _, _ := strings.Cut(rest, "\r\n")
	return number(b, value)
}

// mysql adds what the database counts itself.
func (m meters) mysql(s spent) {
	m.b.Helper()
	for name, what := range map[string]string{"Bytes_received": mysqlIn, "Bytes_sent": mysqlOut, "Innodb_os_log_written": redo} {
		s[what] = m.status(name)
	}
}

func (m meters) status(name string) float64 {
	m.b.Helper()
	pool := rawPool(m.b, m.DSN)
	defer pool.Close()
	var variable, value string
	require.NoError(m.b, pool.QueryRowContext(m.b.Context(), "SHOW GLOBAL STATUS LIKE '"+name+"'").Scan(&variable, &value))
	return number(m.b, value)
}

// bytes adds RabbitMQ's: what the sockets of its port have taken and given, by the kernel's counters of each connection. The
// programs keep theirs for as long as they live.
func (m meters) bytes(s spent) {
	m.b.Helper()
	u, err := url.Parse(m.AMQP)
	require.NoError(m.b, err)
	s[rabbitIn], s[rabbitOut] = sockets(m.b, u.Port())
}

// sockets adds up what the connections to a port that are open have brought and taken.
func sockets(b testing.TB, port string) (in, out float64) {
	b.Helper()
	text, err := exec.Command("ss", "-tinHO", "sport = :"+port).Output() //nolint:noctx,gosec // at once
	require.NoError(b, err)
	sum := func(name string) (sum float64) {
		for _, found := range regexp.MustCompile(name+`:(\d+)`).FindAllStringSubmatch(string(text), -1) {
			sum += number(b, found[1])
		}
		return sum
	}
	return sum("bytes_received"), sum("bytes_acked")
}
