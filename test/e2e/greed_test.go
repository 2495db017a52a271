package e2e

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/loadgen/apiclient"
	"flashsale.dev/seckill/internal/testing/installation"
	"flashsale.dev/seckill/internal/testing/must"
)

// TestLimiter_GreedyCallersGetTheSalesRate has 24 callers that ask two APIs without a pause, for a
// sale of 100 paths a second and a burst of 0.05 s. They get no more by Redis' clock, which
// decides, and 97 % of the rate at least. A machine that stops all callers for the length of the
// burst loses permits, so a round may be repeated. A limiter that denies callers because they share
// a call never passes a round.
func TestLimiter_GreedyCallersGetTheSalesRate(t *testing.T) {
	const rate, burst, callers = 100.0, 0.05, 24
	const leased = 2 * rate * burst // each API may hold a burst from the round before
	r := installation.Start(t, suite, installation.Options{APIs: 2, Consumers: 1})
	now := time.Now()
	goods := must.Get(r.Merchant(t).PutUp(t.Context(), apiclient.NewSale{
		Title: "a kettle", Price: 1999, Stock: 100_000, StartAt: now.Add(-time.Minute).UTC(),
		EndAt: now.Add(time.Hour).UTC(), PerBuyerLimit: 1,
		Rate: &apiclient.Rate{PermitsPerSecond: rate, MaxBurstSeconds: burst},
	}))(t)
	client := redis.NewClient(&redis.Options{Addr: r.Redis.Addr()})
	t.Cleanup(func() { _ = client.Close() })
	clock := func() time.Time { return must.Get(client.Time(context.Background()).Result())(t) }

	web := apiclient.NewHTTP(callers)
	asks := make([]apiclient.Client, callers)
	for i := range asks {
		token := must.Get(r.BuyerToken(int64(i + 1)))(t)
		asks[i] = apiclient.Client{Base: r.Base(i), Token: token, HTTP: web}
	}
	round := func() float64 {
		var all sync.WaitGroup
		var admitted, failed atomic.Int64
		began := clock()
		ctx, end := context.WithTimeout(t.Context(), 2*time.Second)
		defer end()
		for _, ask := range asks {
			all.Go(func() {
				for ctx.Err() == nil {
					a, err := ask.Call(t.Context(), http.MethodPost,
						"/randomPath?goodsId="+goods, nil)
					switch {
					case err == nil && a.Status == http.StatusOK:
						admitted.Add(1)
					case err != nil || a.Status != http.StatusTooManyRequests:
						failed.Add(1)
					}
				}
			})
		}
		all.Wait()
		took := clock().Sub(began).Seconds()
		require.Zero(t, failed.Load())
		got := float64(admitted.Load())
		t.Logf("%.0f admitted in %.2f s", got, took)
		require.LessOrEqual(t, got, rate*burst+rate*took+leased)
		return got / (rate * took)
	}
	best := round()
	for range 20 {
		if best >= 0.97 {
			break
		}
		best = max(best, round())
	}
	require.GreaterOrEqual(t, best, 0.97)
}
