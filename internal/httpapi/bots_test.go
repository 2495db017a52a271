package httpapi_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/seckill"
)

const (
	accounts       = 10_000 // number of bots
	honest         = 200    // number of buyers who wait for Retry-After
	botConcurrency = 16
)

// bot is an account that requests random paths from one address.
type bot struct {
	bearer, addr string
	goods        string
	got, refused atomic.Int64
}

// crowd returns n bots with consecutive ids from first on.
func (h *fixture) crowd(goods string, first int64, n int, addr func(i int) string) []*bot {
	all := make([]*bot, n)
	for i := range all {
		bearer := h.bearer(actor{ID: fmt.Sprint(first + int64(i)), Role: seckill.Buyer})
		all[i] = &bot{bearer: bearer, addr: addr(i) + ":4321", goods: goods}
	}
	return all
}

// ask sends one request and reports whether the bot got a path.
func (b *bot) ask(handler http.Handler) bool {
	r := httptest.NewRequest(http.MethodPost, "/randomPath?goodsId="+b.goods, nil)
	r.RemoteAddr = b.addr
	r.Header.Set("Authorization", b.bearer)
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	if w.Code == http.StatusOK {
		b.got.Add(1)
		return true
	}
	b.refused.Add(1)
	return false
}

// rush lets the bots send requests without a pause until every honest buyer has a path. The buyers
// start after the limiter has refused as many requests as there are bots. rush returns its
// duration.
func (h *fixture) rush(bots, buyers []*bot) time.Duration {
	began, over, inFull := time.Now(), make(chan struct{}), make(chan struct{})
	var machines, people sync.WaitGroup
	var refused atomic.Int64
	for lane := range botConcurrency {
		machines.Go(func() {
			for i := lane; ; i += botConcurrency {
				select {
				case <-over:
					return
				default:
				}
				if !bots[i%len(bots)].ask(h.handler) && refused.Add(1) == int64(len(bots)) {
					close(inFull)
				}
			}
		})
	}
	for _, b := range buyers {
		people.Go(func() {
			<-inFull
			for !b.ask(h.handler) && h.t.Context().Err() == nil {
				time.Sleep(time.Second) // the shortest Retry-After
			}
		})
	}
	people.Wait()
	close(over)
	machines.Wait()
	return time.Since(began)
}

// count sums the paths and refusals of all bots. most is the largest number of paths of one bot.
func count(all []*bot) (got, most, refused int64) {
	for _, b := range all {
		got, refused = got+b.got.Load(), refused+b.refused.Load()
		most = max(most, b.got.Load())
	}
	return got, most, refused
}

// TestRateLimits_BotAccountsGetTheirShareOnly checks a crowd of bots with one account and one
// address each. The limiter cannot distinguish such bots from people. The sale's rate still holds,
// and each bot gets only one path. Therefore every buyer waits at most as long as the limiter needs
// to serve all accounts.
func TestRateLimits_BotAccountsGetTheirShareOnly(t *testing.T) {
	t.Parallel()
	h := newFixture(t, `rules: [{name: randomPathPerUser, route: /randomPath, by: [user],
		scope: node, algorithm: token_bucket, permitsPerSecond: 0.01, burst: 1}]`)
	const rate, leased = 2000, 10
	goods := h.sell(sale{"rate": sale{
		"algorithm": "token_bucket", "permitsPerSecond": rate, "maxBurstSeconds": 0.5,
	}})
	bots := h.crowd(goods, 1_000_000, accounts, func(i int) string {
		return fmt.Sprintf("10.1.%d.%d", i/250, i%250)
	})
	buyers := h.crowd(goods, 1, honest, func(i int) string {
		return fmt.Sprintf("198.51.100.%d", i)
	})
	took := h.rush(bots, buyers)
	got, most, refused := count(bots)
	served, _, turnedAway := count(buyers)
	bound := rate*0.5 + rate*took.Seconds() + leased
	t.Logf("%s: bots asked %d times and got %d paths; %d people asked %d times and got %d; "+
		"the bound is %.0f", took, got+refused, got, honest, served+turnedAway, served, bound)
	require.EqualValues(t, honest, served)
	require.LessOrEqual(t, float64(got+served), bound)
	require.EqualValues(t, 1, most, "one path for each account")
	require.Greater(t, refused, got, "most requests of bots are refused")
}

// TestRateLimits_OneAddressShutsOutNobodyElse checks that ten thousand accounts behind one address
// share that address's limit. They send requests without a pause, and the limiter still refuses no
// buyer at another address.
func TestRateLimits_OneAddressShutsOutNobodyElse(t *testing.T) {
	t.Parallel()
	h := newFixture(t, `rules: [{name: perAddress, route: "*", by: [ip],
		algorithm: sliding_window, limit: 600, interval: 60s, onMissingKey: skip}]`)
	goods := h.sell(nil) // the default rate, 1000/s
	bots := h.crowd(goods, 1_000_000, accounts, func(int) string { return "203.0.113.7" })
	buyers := h.crowd(goods, 1, honest, func(i int) string {
		return fmt.Sprintf("198.51.100.%d", i)
	})
	began := time.Now()
	h.rush(bots, buyers)
	for range 3 { // the bots continue after the buyers have their paths
		for _, b := range bots[:accounts/10] {
			b.ask(h.handler)
		}
	}
	took := time.Since(began)
	got, _, refused := count(bots)
	served, _, turnedAway := count(buyers)
	// A sliding window is an estimate: its old share fades when a minute ends during the test.
	bound := 600 * (1 + took.Seconds()/60)
	t.Logf("%s: the address asked %d times and got %d paths; %d people asked %d times and got %d",
		took, got+refused, got, honest, served+turnedAway, served)
	require.LessOrEqual(t, float64(got), bound, "the address's limit for one minute")
	require.EqualValues(t, honest, served)
	require.Zero(t, turnedAway, "the limiter refused buyers at other addresses")
	require.Greater(t, refused, int64(accounts/10))
}
