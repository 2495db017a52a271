package bench

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testing/installation"
	"flashsale.dev/seckill/internal/testing/must"
	"flashsale.dev/seckill/internal/workers"
)

const (
	idleFor = 15 * time.Second
	// idleWithin bounds the whole benchmark.
	idleWithin = 12 * time.Minute
	// restFor is how long no sale is served before all are at rest. It is longer than workers take
	// to find new sales.
	restFor = 10 * time.Second
)

// restingOps is more commands a second than Redis executes while all sales are at rest. Workers
// read these every minute. It is less than while workers serve a tenth of them.
func restingOps(sales int) int { return sales/5 + 150 }

// BenchmarkIdle measures the processor time of exposed sales that nobody buys from: of all
// processes together, as a share of one core. The first case has no sale, and the last one sells
// one unit a second of one sale.
//
//	go test -run '^$' -bench Idle -benchtime 1x ./test/bench/
func BenchmarkIdle(b *testing.B) { once(b, func() { measureIdle(b) }) }

func measureIdle(b *testing.B) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), idleWithin)
	defer cancel()
	f := newFixture(b)
	noteIdle(f, "no sale", func() {})
	goods := f.sale(1000)
	for exposed, sales := 1, 1_000; sales <= 10_000; exposed, sales = sales, 10*sales {
		exposeAll(b, f.Installation, goods, exposed, sales)
		awaitRest(ctx, b, f.client, sales)
		noteIdle(f, thousands(float64(sales))+" exposed sales at rest", func() {})
	}
	noteIdle(f, "10,000 exposed sales, one sells 1/s", func() { f.buy(goods, serial.Add(1)) })
}

// noteIdle measures for idleFor. It calls work every second.
func noteIdle(f *fixture, name string, work func()) {
	f.b.Helper()
	all := f.all()
	before, began := all.read(), time.Now()
	for time.Since(began) < idleFor {
		work()
		time.Sleep(time.Second)
	}
	used, took := all.since(before), time.Since(began)
	share := func(d time.Duration) float64 { return float64(d) / float64(took) }
	shares := ""
	for _, part := range parts {
		shares += fmt.Sprintf(" %s %.4f", part, share(used[part]))
	}
	results.note(name+", all processes", "≤ 0.05 of a core at 10,000", "%.3f of a core:%s",
		share(used.all()), shares)
}

// awaitRest waits until workers serve none of the new sales any more.
func awaitRest(ctx context.Context, b *testing.B, client redis.UniversalClient, sales int) {
	b.Helper()
	for served := time.Now(); time.Since(served) < restFor; {
		if commandsPerSecond(ctx, b, client) > restingOps(sales) {
			served = time.Now()
		}
		workers.Sleep(ctx, 100*time.Millisecond)
	}
}

// commandsPerSecond is how many commands Redis executes lately.
func commandsPerSecond(ctx context.Context, b *testing.B, client redis.UniversalClient) int {
	b.Helper()
	stats := must.Get(client.InfoMap(ctx, "stats").Result())(b)["Stats"]
	return must.Get(strconv.Atoi(stats["instantaneous_ops_per_sec"]))(b)
}

// exposeAll copies an exposed sale until there are so many, because a request for each takes
// minutes.
func exposeAll(b *testing.B, r *installation.Installation, goods string, exposed, sales int) {
	b.Helper()
	first, ctx, client := installation.Number(b, goods), b.Context(), r.RedisClient(b)
	key := func(goodsID int64) string { return fmt.Sprintf("sk:{%d}", goodsID) }
	fields := must.Get(client.HGetAll(ctx, key(first)).Result())(b)
	pipe := client.Pipeline()
	for i := exposed; i < sales; i++ {
		pipe.HSet(ctx, key(first+int64(i)), fields)
	}
	must.Get(pipe.Exec(ctx))(b)

	db := must.Get(sql.Open("mysql", r.DSN))(b)
	defer db.Close()
	tx := must.Get(db.BeginTx(ctx, nil))(b)
	do := func(statement string, args ...any) {
		must.Get(tx.ExecContext(ctx, statement, args...))(b)
	}
	do("CREATE TEMPORARY TABLE copy SELECT * FROM sales WHERE goods_id = ?", first)
	for i := exposed; i < sales; i++ {
		do("UPDATE copy SET goods_id = ?", first+int64(i))
		do("INSERT INTO sales SELECT * FROM copy")
	}
	require.NoError(b, tx.Commit())
}
