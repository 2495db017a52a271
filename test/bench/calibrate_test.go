package bench

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/capacity"
	"flashsale.dev/seckill/internal/redisstore"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/servers"
	"flashsale.dev/seckill/internal/testenv"
	"flashsale.dev/seckill/test/rig"
)

// calibrationSetting names the file that BenchmarkCalibrate writes.
const calibrationSetting = "SECKILL_BENCH_CALIBRATION"

// BenchmarkCalibrate measures what each piece of work costs each program and server, for internal/capacity. make calibrate runs it
// alone; without the file's name it does nothing, for its figures are no duel.
func BenchmarkCalibrate(b *testing.B) {
	file := os.Getenv(calibrationSetting)
	if file == "" {
		return
	}
	y := newYard(b)
	y.crowdOfConnections()
	rounds := 0
	for b.Loop() {
		y.round()
		rounds++
	}
	cal := y.calibration()
	cal.Memory(b)
	cal.Provenance = capacity.Provenance{
		Machine: place(), Date: time.Now().UTC().Format(time.DateOnly), Command: "make calibrate",
		Notes: fmt.Sprintf("%d rounds; one API and one consumer, loader and servers on the same two processors", rounds),
	}
	text, err := json.MarshalIndent(cal.Calibration, "", "  ")
	require.NoError(b, err)
	require.NoError(b, os.WriteFile(file, append(text, '\n'), 0o644)) //nolint:gosec // a document that everybody may read
}

// manyConnections are those whose memory is measured.
const manyConnections = 2000

// crowdOfConnections measures the API's memory alone and under many connections, before anything else has made it grow.
func (y *yard) crowdOfConnections() {
	y.b.Helper()
	empty := y.redisBytes()
	goods := y.PutUp(y.b, 1, 1)
	sellOut(y.b, y.Rig, goods)
	y.drained(goods)
	y.saleBytes = max(0, y.redisBytes()-empty)
	requests := make([][]byte, 10*manyConnections)
	for i := range requests {
		requests[i] = post("/randomPath?goodsId="+goods, y.token())
	}
	pid := y.APIs[0].Pid()
	y.baseMB = resident(y.b, pid, "VmRSS")
	play(y.b, y.APIs[0].Addr, manyConnections, len(requests), http.StatusConflict, func(i int) []byte { return requests[i] })
	y.connectionKB = 1000 * (resident(y.b, pid, "VmHWM") - y.baseMB) / manyConnections
}

// yard is where pieces of work are done, each by itself.
type yard struct {
	*arenaOfOne
	sums map[string]spent // by piece: what it spent beyond an idle installation
	best map[string]spent // by piece: its quickest round, for what is told by the clock on the wall
	idle []spent          // of each round
	done map[string]float64
	sent map[string][2]float64 // bytes to and from buyers, by piece

	baseMB, connectionKB float64 // the API's
	saleBytes            float64 // Redis', of a sale of one unit
	wake                 float64 // microseconds of the API, of a request that finds it asleep
}

// arenaOfOne is an installation without the floor program beside.
type arenaOfOne struct {
	meters
	b     *testing.B
	store *redisstore.Store
}

func newYard(b *testing.B) *yard {
	b.Helper()
	m := newMeters(b, rig.Start(b, env, rig.Options{}))
	return &yard{
		arenaOfOne: &arenaOfOne{m, b, redisstore.New(m.client, redisstore.Options{})},
		sums:       map[string]spent{}, best: map[string]spent{}, done: map[string]float64{}, sent: map[string][2]float64{},
	}
}

// note adds what a piece of work, done so many times, has spent, less what the installation spends by itself: in each round
// anew, for that grows with the sales that live.
func (y *yard) note(piece string, done int, s spent) {
	idle := y.idle[len(y.idle)-1]
	for name := range s {
		if name != wall && name != asking {
			s[name] = max(0, s[name]-idle[name]*s[wall]/idle[wall])
		}
	}
	y.sums[piece] = y.sums[piece].plus(s)
	y.done[piece] += float64(done)
	if best, found := y.best[piece]; !found || s[asking] < best[asking] {
		y.best[piece] = s
	}
}

// pressure is how purchases and paths are asked for: over so many connections, each of which asks when it has its answer, or so many
// a second in all.
type pressure struct{ conns, perSecond int }

// of names a piece of work so asked for.
func (p pressure) of(piece string) string {
	if p.perSecond > 0 {
		return fmt.Sprintf("%s, %d a second", piece, p.perSecond)
	}
	return fmt.Sprintf("%s, %d at once", piece, p.conns)
}

// many is how much is asked for in a round of so much.
func (p pressure) many(all int) int {
	if p.perSecond > 0 {
		return 3 * p.perSecond
	}
	return all * min(p.conns, 32) / 32
}

// loads are those at which purchases and paths are tried: groups of one, and of many. A leisurely one is among them, for then a
// transaction has few orders, and as many messages: it tells the cost of the one from that of the other.
func loads() []pressure {
	return []pressure{{conns: 3}, {conns: 16}, full, {conns: 16, perSecond: 300}}
}

var full = pressure{conns: connections} //nolint:gochecknoglobals // a name

// round does every piece once.
func (y *yard) round() {
	const many = 12_000
	gone := y.PutUp(y.b, 1, 1)
	sellOut(y.b, y.Rig, gone)
	open, tight := y.PutUp(y.b, 10_000_000, 1), y.tight()
	y.idle = append(y.idle, y.over(func() { time.Sleep(5 * time.Second) })) // that it does nothing is what is looked at
	y.ask("page", many, connections, http.StatusOK, func(int) []byte { return get("/sales/"+open, "") })
	y.ask("refused", many, connections, http.StatusConflict, func(int) []byte { return post("/randomPath?goodsId="+gone, y.token()) })
	y.ask("limited", many, connections, http.StatusTooManyRequests, func(int) []byte { return post("/randomPath?goodsId="+tight, y.token()) })
	y.pace("alone", aloneRequests, http.StatusConflict, func(int) []byte { return post("/randomPath?goodsId="+gone, y.token()) })
	for _, l := range loads() {
		paths := make([][]byte, l.many(many))
		for i := range paths {
			paths[i] = post("/randomPath?goodsId="+open, y.token())
		}
		y.send(l.of("path"), paths, l, http.StatusOK, func() {})
		bought := purchases(y.b, y.Rig, y.store, id(y.b, open), l.many(many), scattered)[:l.many(many)]
		y.send(l.of("bought"), bought, l, http.StatusAccepted, func() { y.drained(open) }) // consumer and database are waited for
	}
	y.lose(many)
	y.look(open, many)
}

func (y *yard) token() string { return token(y.b, y.Rig, serial.Add(1)) }

// tight is a sale that tells nearly everybody to wait.
func (y *yard) tight() string {
	y.b.Helper()
	goods := y.PutUp(y.b, 1000, 1)
	rate := map[string]any{"permitsPerSecond": 0.01, "maxBurstSeconds": 1, "maxWaitMillis": 0}
	require.NoError(y.b, y.Merchant(y.b).Do(y.b.Context(), http.MethodPatch, "/admin/sales/"+goods, map[string]any{"rate": rate}, &struct{}{}))
	y.eat(goods)
	return goods
}

// eat takes the one permit that a tight sale has.
func (y *yard) eat(goods string) {
	y.b.Helper()
	require.Eventually(y.b, func() bool {
		a, err := y.Buyer(y.b, serial.Add(1)).Call(y.b.Context(), http.MethodPost, "/randomPath?goodsId="+goods, nil)
		return err == nil && a.Status == http.StatusTooManyRequests
	}, 10*time.Second, 10*time.Millisecond)
}

// ask notes n answers of one kind. The requests are made before.
func (y *yard) ask(piece string, n, conns, want int, request func(int) []byte) {
	y.b.Helper()
	requests := make([][]byte, n)
	for i := range requests {
		requests[i] = request(i)
	}
	y.send(piece, requests, pressure{conns: conns}, want, func() {})
}

// send plays requests, and does what must end before they are paid for.
func (y *yard) send(piece string, requests [][]byte, p pressure, want int, then func()) {
	y.b.Helper()
	var in, out atomic.Int64
	var took time.Duration
	s := y.over(func() {
		began := time.Now()
		took = crowd(y.b, y.APIs[0].Addr, p.conns, len(requests), func(c *client, i int) error {
			if p.perSecond > 0 {
				time.Sleep(time.Until(began.Add(time.Duration(i) * time.Second / time.Duration(p.perSecond))))
			}
			err := c.ask(requests[i], want)
			in.Add(int64(len(requests[i])))
			out.Add(int64(c.size))
			return err
		})
		then()
	})
	s[asking] = took.Seconds()
	y.note(piece, len(requests), s)
	sent := y.sent[piece]
	y.sent[piece] = [2]float64{sent[0] + float64(in.Load()), sent[1] + float64(out.Load())}
}

// drained waits until nothing of a goods is pending, by a look that is none of the calls that are counted.
func (m meters) drained(goods string) {
	m.b.Helper()
	require.Eventually(m.b, func() bool {
		left, err := m.client.HGet(m.b.Context(), "sk:{"+goods+"}", "pend").Int()
		return err == nil && left == 0
	}, time.Minute, 10*time.Millisecond, "orders stay pending")
}

// aloneRequests a second find a node awake or asleep, and hardly ever meet.
const aloneRequests = 1200

// pace asks at a leisurely rate, for two seconds.
func (y *yard) pace(piece string, rate, want int, request func(i int) []byte) {
	y.b.Helper()
	requests := make([][]byte, 2*rate)
	for i := range requests {
		requests[i] = request(i)
	}
	y.send(piece, requests, pressure{conns: 16, perSecond: rate}, want, func() {})
}

// lose notes purchases with good paths of a sale that is sold out meanwhile.
func (y *yard) lose(n int) {
	y.b.Helper()
	goods := y.PutUp(y.b, 1, 1)
	requests := purchases(y.b, y.Rig, y.store, id(y.b, goods), n, inOrder)
	sellOut(y.b, y.Rig, goods)
	y.send("lost", requests, full, http.StatusConflict, func() {})
}

// look notes looks at orders, and the opening of event streams up to their first event.
func (y *yard) look(goods string, n int) {
	y.b.Helper()
	var sns, tokens []string
	unlock := y.lock(goods) // so that what is bought stays queued
	for range connections {
		buyer := serial.Add(1)
		var path struct{ RandomPath string }
		var placed struct{ OrderSn string }
		c := y.Buyer(y.b, buyer)
		c.Token = token(y.b, y.Rig, buyer) // who has told a name and a number: they travel with the order
		require.NoError(y.b, c.Do(y.b.Context(), http.MethodPost, "/randomPath?goodsId="+goods, nil, &path))
		require.NoError(y.b, c.Do(y.b.Context(), http.MethodPost, "/"+path.RandomPath+"/decrStock?goodsId="+goods, nil, &placed))
		sns, tokens = append(sns, placed.OrderSn), append(tokens, token(y.b, y.Rig, buyer))
	}
	at := func(i int) int { return i % len(sns) }
	ask := func(i int) []byte { return get("/orders/"+sns[at(i)], tokens[at(i)]) }
	y.ask("queued", n/2, connections, http.StatusOK, ask)
	y.pace("queued, leisurely", aloneRequests, http.StatusOK, ask)
	unlock()
	y.drained(goods)
	y.ask("look", n, connections, http.StatusOK, ask)
	y.pace("look, leisurely", aloneRequests, http.StatusOK, ask)
	y.note("stream", 1000, y.over(func() {
		for i := range 1000 {
			firstEvent(y.b, y.APIs[0].Addr, get("/orders/"+sns[at(i)]+"/events", tokens[at(i)]))
		}
	}))
}

// lock keeps a goods' row from whoever would write it, and returns what lets it go. (A consumer that was paused would not tell its metrics.)
func (y *yard) lock(goods string) (unlock func()) {
	y.b.Helper()
	pool := rawPool(y.b, y.DSN)
	tx, err := pool.BeginTx(y.b.Context(), nil)
	require.NoError(y.b, err)
	var stock int64
	require.NoError(y.b, tx.QueryRowContext(y.b.Context(), "SELECT stock FROM sales WHERE goods_id = ? FOR UPDATE", goods).Scan(&stock))
	return func() {
		require.NoError(y.b, tx.Rollback())
		require.NoError(y.b, pool.Close())
	}
}

// firstEvent opens an event stream, and leaves when it has told something.
func firstEvent(b *testing.B, addr string, request []byte) {
	b.Helper()
	conn, err := net.Dial("tcp", addr) //nolint:noctx // loopback
	require.NoError(b, err)
	defer conn.Close()
	require.NoError(b, conn.SetDeadline(time.Now().Add(10*time.Second)))
	_, err = conn.Write(request)
	require.NoError(b, err)
	for in := bufio.NewReader(conn); ; {
		line, err := in.ReadString('\n')
		require.NoError(b, err)
		if strings.HasPrefix(line, "data:") {
			return
		}
	}
}

func get(target, token string) []byte {
	if token != "" {
		token = "Authorization: Bearer " + token + "\r\n"
	}
	return fmt.Appendf(nil, "GET %s HTTP/1.1\r\nHost: sale\r\n%s\r\n", target, token)
}

// measured is a calibration in the making.
type measured struct{ capacity.Calibration }

// Memory measures what entries take in Redis, of a hundred thousand each, and the API's.
func (c *measured) Memory(b *testing.B) {
	server := testenv.Redis(b)
	client := servers.Redis([]string{server.Addr()}, "")
	s := newShelf(b, client, 1)
	const n = 100_000.0
	at := func() float64 { return usedMemory(b, client) * 1e6 }
	empty := at()
	var groups [][]seckill.Reservation
	for range int(n) / 200 {
		groups = append(groups, s.prepare(b, 200))
	}
	paths := at()
	var outbox, sns []string
	for _, group := range groups {
		g, err := s.Reserve(b.Context(), 1, 1, group)
		require.NoError(b, err)
		outbox = append(outbox, g.OutboxID)
		for _, r := range group {
			sns = append(sns, r.OrderSn)
		}
	}
	reserved := at()
	require.NoError(b, s.Confirmed(b.Context(), 1, outbox...))
	confirmed := at()
	for i := 0; i < len(sns); i += 500 {
		_, err := s.Settle(b.Context(), 1, sns[i:i+500])
		require.NoError(b, err)
	}
	settled := at()
	require.NoError(b, client.Del(b.Context(), "sk:{1}:buyers").Err())
	used := at()
	r := &c.Redis
	r.UnusedPath, r.Outbox, r.Pending = (paths-empty)/n, (reserved-confirmed)/n, (confirmed-settled)/n
	r.Buyer, r.UsedPath = (settled-used)/n, (used-empty)/n
	require.NoError(b, client.Close())
}
