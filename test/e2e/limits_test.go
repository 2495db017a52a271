package e2e

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/loadgen/apiclient"
	"flashsale.dev/seckill/internal/testing/installation"
	"flashsale.dev/seckill/internal/testing/must"
)

// pathAsker asks two APIs for paths of one sale. Every request is another buyer's, so that only the
// sale's limiter denies.
type pathAsker struct {
	*installation.Installation
	t      *testing.T
	goods  string
	web    *http.Client
	buyers *atomic.Int64
}

func newPathAsker(t *testing.T, r *installation.Installation) pathAsker {
	t.Helper()
	return pathAsker{r, t, r.PutUp(t, 100_000, 1), apiclient.NewHTTP(64), &atomic.Int64{}}
}

// ask asks an API once and reports whether the buyer got a path; false after the end of ctx.
func (p pathAsker) ask(ctx context.Context, api int) bool {
	token := must.Get(p.BuyerToken(p.buyers.Add(1)))(p.t)
	c := apiclient.Client{Base: p.Base(api), Token: token, HTTP: p.web}
	a, err := c.Call(ctx, http.MethodPost, "/randomPath?goodsId="+p.goods, nil)
	return err == nil && a.Status == http.StatusOK
}

// drain asks each API until it denies, and returns how many buyers got a path.
func (p pathAsker) drain() (n int) {
	for api := range p.APIs {
		for p.ask(p.t.Context(), api) {
			n++
		}
	}
	return n
}

// set changes the limiter of the sale, and waits until each API has it.
func (p pathAsker) set(limit map[string]any) {
	p.t.Helper()
	op, path := p.Operator(p.t), "/admin/limiters/randomPath/"+p.goods
	require.NoError(p.t, op.Do(p.t.Context(), http.MethodPut, path, limit, nil))
	for api := range p.APIs {
		op.Base = p.Base(api)
		var got struct{ PermitsPerSecond float64 }
		require.NoError(p.t, op.Do(p.t.Context(), http.MethodGet, path, nil, &got))
		require.InDelta(p.t, limit["permitsPerSecond"], got.PermitsPerSecond, 1e-9)
	}
}

// TestLimiter_ChangedRateKeepsPermitsOnLiveAPIs lowers and raises the rate of a drained limiter
// whose burst is in permits, while two APIs use it: by a hundred with a burst of 100, and by fifty
// with one of 40 and back. Nobody gets a second burst. The rates are so low that the test's time
// adds no permit, and the bound counts those that a very slow machine adds.
func TestLimiter_ChangedRateKeepsPermitsOnLiveAPIs(t *testing.T) {
	r := installation.Start(t, suite, installation.Options{APIs: 2, Consumers: 1})
	client := r.RedisNode(t)
	const rate = 0.01 // one permit in 100 s
	for _, c := range []struct {
		burst int
		rates []float64
	}{{100, []float64{rate / 100}}, {40, []float64{rate / 50, rate}}} {
		p := newPathAsker(t, r)
		set := func(rate float64) {
			p.set(map[string]any{
				"algorithm": "token_bucket", "permitsPerSecond": rate, "burst": c.burst,
			})
		}
		began := must.Get(client.Time(t.Context()).Result())(t)
		set(rate)
		got := p.drain()
		require.GreaterOrEqual(t, got, c.burst)
		for _, next := range c.rates {
			set(next)
			got += p.drain()
		}
		took := must.Get(client.Time(t.Context()).Result())(t).Sub(began)
		require.LessOrEqual(t, got, c.burst+int(rate*took.Seconds()))
	}
}

// TestLimiter_LeavingClientsOpenNoWindowOnLiveAPIs has seven clients of two APIs take all places of
// a queue: one permit in 10 s, and a wait of up to a minute. All leave but the last one. It stands
// on the places before it, so new clients get no place, but for those that have drained meanwhile.
func TestLimiter_LeavingClientsOpenNoWindowOnLiveAPIs(t *testing.T) {
	const rate, places, again = 0.1, 7, 20
	r := installation.Start(t, suite, installation.Options{APIs: 2, Consumers: 1})
	p, client := newPathAsker(t, r), r.RedisNode(t)
	p.set(map[string]any{
		"algorithm": "reserve", "permitsPerSecond": rate, "burst": 1, "maxWaitMillis": 60_000,
	})
	began := must.Get(client.Time(t.Context()).Result())(t)
	var asking sync.WaitGroup
	defer asking.Wait()
	last, end := context.WithCancel(t.Context())
	defer end()
	others, leave := context.WithCancel(last)
	for i := range places - 1 {
		require.True(t, p.queues(others, i, &asking))
	}
	require.True(t, p.queues(last, 0, &asking))
	leave()
	got := 0
	for i := range again {
		if p.queues(last, i, &asking) {
			got++
		}
		time.Sleep(50 * time.Millisecond) // the APIs notice clients that left, and return permits
	}
	took := must.Get(client.Time(t.Context()).Result())(t).Sub(began)
	t.Logf("%d of %d new clients got a place in %v", got, again, took)
	require.LessOrEqual(t, got, int(rate*took.Seconds()))
}

// queues begins to ask an API, and reports whether the buyer gets a path or a place in the queue.
func (p pathAsker) queues(ctx context.Context, api int, asking *sync.WaitGroup) bool {
	before, answer := p.resetMillis(), make(chan bool, 1)
	asking.Go(func() { answer <- p.ask(ctx, api) })
	for {
		select {
		case got := <-answer:
			return got
		case <-time.After(5 * time.Millisecond):
			if p.resetMillis() > before+5000 {
				return true
			}
		}
	}
}

// resetMillis is the time until the sale's limiter is full.
func (p pathAsker) resetMillis() int64 {
	var s struct{ ResetMillis int64 }
	require.NoError(p.t, p.Operator(p.t).Do(p.t.Context(), http.MethodGet,
		"/admin/limiters/randomPath/"+p.goods, nil, &s))
	return s.ResetMillis
}
