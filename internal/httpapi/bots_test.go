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
	honest         = 200    // buyers who ask, and come again after Retry-After
	botConcurrency = 16
)

// bot is somebody who asks for a random path, from an address.
type bot struct {
	bearer, addr string
	got, refused atomic.Int64
}

// crowd makes so many of them, whose ids begin at first.
func (h *fixture) crowd(first int64, n int, addr func(i int) string) []*bot {
	all := make([]*bot, n)
	for i := range all {
		token, err := h.tokens.Sign(seckill.Actor{ID: first + int64(i), Role: seckill.Buyer}, time.Hour)
		require.NoError(h.t, err)
		all[i] = &bot{bearer: "Bearer " + token, addr: addr(i) + ":4321"}
	}
	return all
}

// knock asks once and reports whether there was a path.
func (k *bot) knock(handler http.Handler, goods int64) bool {
	r := httptest.NewRequest(http.MethodPost, "/randomPath?goodsId="+text(goods), nil)
	r.RemoteAddr = k.addr
	r.Header.Set("Authorization", k.bearer)
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	if w.Code == http.StatusOK {
		k.got.Add(1)
		return true
	}
	k.refused.Add(1)
	return false
}

// rush lets bots ask as fast as they can, again and again, until every honest buyer has a path: those come when the bots have
// been refused as often as there are bots. It gives the time it took.
func (h *fixture) rush(goods int64, bots, buyers []*bot) time.Duration {
	began, over, inFull := time.Now(), make(chan struct{}), make(chan struct{})
	var machines, people sync.WaitGroup
	var refused atomic.Int64
	for lane := range botConcurrency {
		machines.Go(func() {
			for {
				for i := lane; i < len(bots); i += botConcurrency {
					select {
					case <-over:
						return
					default:
						if !bots[i].knock(h.handler, goods) && refused.Add(1) == int64(len(bots)) {
							close(inFull)
						}
					}
				}
			}
		})
	}
	for _, b := range buyers {
		people.Go(func() {
			<-inFull
			for !b.knock(h.handler, goods) && h.t.Context().Err() == nil {
				time.Sleep(time.Second) // what Retry-After says at least
			}
		})
	}
	people.Wait()
	close(over)
	machines.Wait()
	return time.Since(began)
}

func count(all []*bot) (got, most, refused int64) {
	for _, k := range all {
		got, most, refused = got+k.got.Load(), max(most, k.got.Load()), refused+k.refused.Load()
	}
	return got, most, refused
}

// TestRateLimits_BotAccountsGetTheirShareOnly: bots with an account and an address each can't be answered from people one by one.
// What holds is the rate of the goods, and that no account gets a second path before the others had a first: so nobody waits
// longer than it takes to serve them all.
func TestRateLimits_BotAccountsGetTheirShareOnly(t *testing.T) {
	h := newLimitedFixture(t, `rules: [{name: randomPathPerUser, route: /randomPath, by: [user], scope: node, algorithm: token_bucket, permitsPerSecond: 0.01, burst: 1}]`)
	const rate, leased = 2000, 10
	h.rated(43, seckill.Rate{Algorithm: "token_bucket", PermitsPerSecond: rate, MaxBurstSeconds: 0.5})
	bots := h.crowd(1_000_000, accounts, func(i int) string { return fmt.Sprintf("10.1.%d.%d", i/250, i%250) })
	buyers := h.crowd(1, honest, func(i int) string { return fmt.Sprintf("198.51.100.%d", i) })
	took := h.rush(43, bots, buyers)
	got, most, refused := count(bots)
	served, _, turnedAway := count(buyers)
	bound := rate*0.5 + rate*took.Seconds() + leased
	t.Logf("%s: bots asked %d times and got %d paths; %d people asked %d times and got %d; the bound is %.0f",
		took.Round(time.Millisecond), got+refused, got, honest, served+turnedAway, served, bound)
	require.EqualValues(t, honest, served)
	require.LessOrEqual(t, float64(got+served), bound)
	require.EqualValues(t, 1, most, "one path for each account, however often it asks")
	require.Greater(t, refused, got, "most were turned away")
}

// TestRateLimits_OneAddressShutsOutNobodyElse: ten thousand accounts behind one address share what an address may have,
// and take nothing from the others, although they ask without a pause.
func TestRateLimits_OneAddressShutsOutNobodyElse(t *testing.T) {
	h := newLimitedFixture(t, `rules: [{name: perAddress, route: "*", by: [ip], algorithm: sliding_window, limit: 600, interval: 60s, onMissingKey: skip}]`)
	h.sell(43) // 1000/s, as by default
	bots := h.crowd(1_000_000, accounts, func(int) string { return "203.0.113.7" })
	buyers := h.crowd(1, honest, func(i int) string { return fmt.Sprintf("198.51.100.%d", i) })
	began := time.Now()
	h.rush(43, bots, buyers)
	for range 3 { // and on, when the others have what they came for
		for _, b := range bots[:accounts/10] {
			b.knock(h.handler, 43)
		}
	}
	took := time.Since(began)
	got, _, refused := count(bots)
	served, _, turnedAway := count(buyers)
	// A sliding window is an estimate: where one minute ends in the middle, the last one's share fades while they ask.
	bound := 600 * (1 + took.Seconds()/60)
	t.Logf("%s: the address asked %d times and got %d paths; %d people asked %d times and got %d",
		took.Round(time.Millisecond), got+refused, got, honest, served+turnedAway, served)
	require.LessOrEqual(t, float64(got), bound, "in one minute")
	require.EqualValues(t, honest, served)
	require.Zero(t, turnedAway, "nobody else is refused")
	require.Greater(t, refused, int64(accounts/10))
}
