package bench

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/redisstore"
	"flashsale.dev/seckill/internal/testing/installation"
)

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
	m := newMeters(b, installation.Start(b, env, installation.Options{}))
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
