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
	accounts       = 10_000 // of bots
	honest         = 200    // buyers who ask again after Retry-After
	botConcurrency = 16
)

// bot is an account that asks for random paths from one address.
type bot struct {
	bearer, addr string
	got, refused atomic.Int64
}

// crowd returns n bots, whose ids begin at first.
func (h *fixture) crowd(first int64, n int, addr func(i int) string) []*bot {
	all := make([]*bot, n)
	for i := range all {
		bearer := h.bearer(actor{ID: first + int64(i), Role: seckill.Buyer})
		all[i] = &bot{bearer: bearer, addr: addr(i) + ":4321"}
	}
	return all
}

// ask asks once and reports whether the bot got a path.
func (b *bot) ask(handler http.Handler) bool {
	r := httptest.NewRequest(http.MethodPost, "/randomPath?goodsId=43", nil)
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

// rush lets bots ask without a pause until every honest buyer has a path. The buyers come when as
// many requests of bots were refused as there are bots. rush returns its duration.
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

// count adds up the paths and refusals of bots; most is the largest number of paths of one bot.
func count(all []*bot) (got, most, refused int64) {
	for _, b := range all {
		got, refused = got+b.got.Load(), refused+b.refused.Load()
		most = max(most, b.got.Load())
	}
	return got, most, refused
}

// Bots with an account and an address each look like people. What holds is the sale's rate, and
// that no account gets a second path before the others had a first. So nobody waits longer than it
// takes to serve them all.
func TestRateLimits_BotAccountsGetTheirShareOnly(t *testing.T) {
	t.Parallel()
	h := newLimitedFixture(t, `rules: [{name: randomPathPerUser, route: /randomPath, by: [user],
		scope: node, algorithm: token_bucket, permitsPerSecond: 0.01, burst: 1}]`)
	const rate, leased = 2000, 10
	h.sell(43, rated(seckill.Rate{
		Algorithm: "token_bucket", PermitsPerSecond: rate, MaxBurstSeconds: 0.5,
	}))
	bots := h.crowd(1_000_000, accounts, func(i int) string {
		return fmt.Sprintf("10.1.%d.%d", i/250, i%250)
	})
	buyers := h.crowd(1, honest, func(i int) string { return fmt.Sprintf("198.51.100.%d", i) })
	took := h.rush(bots, buyers)
	got, most, refused := count(bots)
	served, _, turnedAway := count(buyers)
	bound := rate*0.5 + rate*took.Seconds() + leased
	t.Logf("%s: bots asked %d times and got %d paths; %d people asked %d times and got %d; "+
		"the bound is %.0f", took, got+refused, got, honest, served+turnedAway, served, bound)
	require.EqualValues(t, honest, served)
	require.LessOrEqual(t, float64(got+served), bound)
	require.EqualValues(t, 1, most, "one path for each account, however often it asks")
	require.Greater(t, refused, got, "most requests of bots are refused")
}

// Ten thousand accounts behind one address share what an address may have. They take nothing from
// the others, although they ask without a pause.
func TestRateLimits_OneAddressShutsOutNobodyElse(t *testing.T) {
	t.Parallel()
	h := newLimitedFixture(t, `rules: [{name: perAddress, route: "*", by: [ip],
		algorithm: sliding_window, limit: 600, interval: 60s, onMissingKey: skip}]`)
	h.sell(43) // 1000/s, the default
	bots := h.crowd(1_000_000, accounts, func(int) string { return "203.0.113.7" })
	buyers := h.crowd(1, honest, func(i int) string { return fmt.Sprintf("198.51.100.%d", i) })
	began := time.Now()
	h.rush(bots, buyers)
	for range 3 { // the bots go on when the buyers have their paths
		for _, b := range bots[:accounts/10] {
			b.ask(h.handler)
		}
	}
	took := time.Since(began)
	got, _, refused := count(bots)
	served, _, turnedAway := count(buyers)
	// A sliding window is an estimate. Where a minute ends during the test, its share fades.
	bound := 600 * (1 + took.Seconds()/60)
	t.Logf("%s: the address asked %d times and got %d paths; %d people asked %d times and got %d",
		took, got+refused, got, honest, served+turnedAway, served)
	require.LessOrEqual(t, float64(got), bound, "in one minute")
	require.EqualValues(t, honest, served)
	require.Zero(t, turnedAway, "nobody else is refused")
	require.Greater(t, refused, int64(accounts/10))
}
