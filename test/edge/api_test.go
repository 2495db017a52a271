package edge

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/loadgen/apiclient"
	"flashsale.dev/seckill/internal/loadgen/buyer"
	"flashsale.dev/seckill/internal/testing/buyers"
	"flashsale.dev/seckill/internal/testing/installation"
	"flashsale.dev/seckill/internal/testing/must"
)

// TestEdge_BeforeTheRealAPI runs an nginx in front of two real APIs on real servers. Only addresses
// differ from the deployed files.
func TestEdge_BeforeTheRealAPI(t *testing.T) {
	r := installation.Start(t, suite,
		installation.Options{APIs: 2, Env: []string{"SECKILL_TRUSTED_PROXIES=127.0.0.1"}})
	e := start(t, before(t, r))
	t.Run("one bucket for the edge and the APIs", func(t *testing.T) { oneBucket(t, r, e) })
	t.Run("an operator changes the rate", func(t *testing.T) { operatorsRate(t, r, e) })
	t.Run("sold out, and back on sale", func(t *testing.T) { soldOutAndBack(t, r, e) })
	t.Run("not started", func(t *testing.T) { notStarted(t, r, e) })
	t.Run("a rush", func(t *testing.T) { rushThrough(t, r, e) })
}

// before returns the deployed files for an installation. All requests come from an exempt address
// unless a test sets another one.
func before(t *testing.T, r *installation.Installation) site {
	return site{
		"upstream.conf": "upstream api { server " + r.APIs[0].Addr + "; server " + r.APIs[1].Addr +
			"; keepalive 16; }\n",
		"trusted.conf": believesTests,
		"exempt.conf":  "geo $edge_exempt { default 0; 127.0.0.1 1; }\n",
		"settings.lua": asking(t, r.Redis.Addr(), `
			{ rule = "edgePerAddress", by = "address", window = { 10, 10 } },
			{ rule = "edge", by = "all", bucket = { 20000, 20000 } },
			{ rule = "randomPath", by = "goods", sale = true },`),
	}
}

// sale creates a sale of so many units with a rate.
func sale(
	t *testing.T, r *installation.Installation, units int64, starts time.Time, rate *apiclient.Rate,
) string {
	return must.Get(r.Merchant(t).PutUp(t.Context(), apiclient.NewSale{
		Title: `"rate":{"permitsPerSecond":1}`, Price: 1, Stock: units, StartAt: starts.UTC(),
		EndAt: starts.Add(time.Hour).UTC(), PerBuyerLimit: 1, Rate: rate,
	}))(t)
}

// nineAtMost allows nine requests at once. The next permit comes after 400 s, which is longer than
// a test.
var nineAtMost = &apiclient.Rate{PermitsPerSecond: 0.0025, MaxBurstSeconds: 3600}

func oneBucket(t *testing.T, r *installation.Installation, e *edge) {
	goods := sale(t, r, 1000, time.Now().Add(-time.Minute), nineAtMost)
	granted := 0
	for i := range 24 {
		reason := ""
		if i%2 == 0 {
			reason = e.path(goods, buyerHeaders(t, int64(i+1))...).Reason
		} else {
			reason = must.Get(at(r.Buyer(t, int64(i+1)), r.Base(i/2)).Call(t.Context(), "POST",
				"/randomPath?goodsId="+goods, nil))(t).Reason
		}
		if reason == "OK" {
			granted++
		} else {
			require.Equal(t, "RATE_LIMITED", reason)
		}
	}
	require.Equal(t, 9, granted, "each path costs one permit, whichever way it was asked for")
	a := e.path(goods, buyerHeaders(t, 99)...)
	limited(t, a)
	require.Equal(t, `"randomPath";q=9;w=3600`, a.Header.Get("RateLimit-Policy"),
		"the sale's own rate")
	// The edge itself denies this request, because no API can answer.
	for _, p := range r.APIs {
		require.NoError(t, p.Pause())
	}
	limited(t, e.path(goods, buyerHeaders(t, 99)...))
	for _, p := range r.APIs {
		require.NoError(t, p.Resume())
	}
}

func at(c apiclient.Client, base string) apiclient.Client {
	c.Base = base
	return c
}

func operatorsRate(t *testing.T, r *installation.Installation, e *edge) {
	goods := sale(t, r, 1000, time.Now().Add(-time.Minute), nineAtMost)
	for i := range 10 {
		e.path(goods, buyerHeaders(t, int64(i+1))...)
	}
	limited(t, e.path(goods, buyerHeaders(t, 1)...))
	require.NoError(t, r.Operator(t).Do(t.Context(), "PUT", "/admin/limiters/randomPath/"+goods,
		map[string]any{
			"algorithm": "token_bucket", "permitsPerSecond": 1000, "maxBurstSeconds": 3600,
		}, nil))
	e.becomes("OK", goods, buyerHeaders(t, 1)...)
}

func soldOutAndBack(t *testing.T, r *installation.Installation, e *edge) {
	goods := sale(t, r, 1, time.Now().Add(-time.Minute), nil)
	report := must.Get(buyers.Run(t.Context(), buyers.Plan{
		Base: e.base, GoodsID: goods, Buyers: 1, Concurrency: 1, Token: r.BuyerToken,
	}))(t)
	require.Equal(t, 1, report.Count(buyer.Won))
	for i := range 20 {
		a := e.path(goods, buyerHeaders(t, int64(i+2))...)
		require.Equal(t, "SOLD_OUT", a.Reason)
		require.JSONEq(t, `{"available":0}`, string(a.Data))
		shaped(t, a)
	}
	require.NoError(t, at(r.Buyer(t, 1), e.base).Do(t.Context(), "POST",
		"/orders/"+report.Results[0].OrderSn+"/cancel", nil, nil))
	e.becomes("OK", goods, buyerHeaders(t, 30)...)
	require.Equal(t, "UNAUTHENTICATED", e.path(goods).Reason)
	require.Equal(t, "NOT_FOUND", e.path("1", buyerHeaders(t, 1)...).Reason)
}

// notStarted checks that no buyer gets a path before Redis' clock reaches the start. The edge must
// deny no buyer after that.
func notStarted(t *testing.T, r *installation.Installation, e *edge) {
	goods := sale(t, r, 10, time.Now().Add(1500*time.Millisecond), nil)
	require.Equal(t, "NOT_STARTED", e.path(goods, buyerHeaders(t, 1)...).Reason)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for e.path(goods, buyerHeaders(t, 1)...).Reason == "NOT_STARTED" && ctx.Err() == nil {
		time.Sleep(60 * time.Millisecond) // as fast as a person; a faster buyer would be denied
	}
	require.Equal(t, "OK", e.path(goods, buyerHeaders(t, 2)...).Reason)
}

// rushThrough sells everything through the edge, as package e2e does without one.
func rushThrough(t *testing.T, r *installation.Installation, e *edge) {
	goods, before := r.PutUp(t, 300, 1), len(e.nginx.WholeLog())
	report := must.Get(buyers.Run(t.Context(), buyers.Plan{
		Base: e.base, GoodsID: goods, Buyers: 2000, Concurrency: 100, FirstID: 1000,
		Token: r.BuyerToken,
	}))(t)
	require.Equal(t, 300, report.Count(buyer.Won))
	require.Zero(t, report.Count(buyer.GaveUp))
	l := r.Drained(t, goods, time.Minute)
	require.True(t, l.Balanced, "%+v", l)
	require.Equal(t, []int64{300, 0, 0, 300}, []int64{l.Total, l.Available, l.Pending, l.Sold})
	log := e.nginx.WholeLog()[before:]
	require.GreaterOrEqual(t, strings.Count(log, `"status":2`), 300)
	for line := range strings.Lines(log) {
		require.NotContains(t, line, `"status":5`)
		// On a busy machine Redis may exceed the edge's 50 ms, and the API decides then. The log
		// has no other error.
		if !strings.Contains(line, "edge: redis: ") {
			require.NotContains(t, strings.ToLower(line), "lua")
		}
	}
	require.EqualValues(t, 300, r.Facts(t, goods).Units)
}
