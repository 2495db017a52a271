package e2e

import (
	"io"
	"net/http"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/loadgen/apiclient"
	"flashsale.dev/seckill/internal/order/orderwriter"
	"flashsale.dev/seckill/internal/testing/buyers"
	"flashsale.dev/seckill/internal/testing/installation"
	"flashsale.dev/seckill/internal/testing/must"
)

// TestInstallation runs tests that each use sales of their own on one installation.
func TestInstallation(t *testing.T) {
	r := installation.Start(t, suite, installation.Options{
		APIs: 2, Consumers: 2, Env: []string{"SECKILL_PAYMENT_SECRET=" + paymentSecret},
	})
	for _, test := range []struct {
		name string
		run  func(*testing.T, *installation.Installation)
	}{
		// This test is the first: an API that has served a rush has free heap that would hide
		// growth.
		{"Export_MemoryDoesNotGrowWithRows", exportMemory},
		{"Rush_EachBuyerAsksFiveTimesAtOnce", func(t *testing.T, r *installation.Installation) {
			rushSells(t, r, 1000, 1, buyers.Plan{Concurrency: 40, ParallelPurchases: 5})
		}},
		{"Rush_QuantityThreeOfLimitFive", func(t *testing.T, r *installation.Installation) {
			rushSells(t, r, 999, 5,
				buyers.Plan{Concurrency: 100, Quantity: 3, ParallelPurchases: 2})
		}},
		{"Rush_EachMessageDeliveredTwice", rushDoubledMessages},
		{"BadRequests_ChangeNothing", badRequestsChangeNothing},
		{"Seckillctl_RebuildsSale", ctlRebuildsSale},
		{"Seckillctl_SetsLimiterOnEachNode", ctlSetsLimiter},
		{"Codes_ServeOneBuyerEach", codesServeOneBuyerEach},
		{"Processors_ConsumersUseAPart", processors},
		{"TestProvider_APIsWarnAtStart", warnOfTestProvider},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, r) })
	}
	// This test is the last, because it ends the installation.
	t.Run("Programs_SIGTERMEndsEachInOrder", func(t *testing.T) { sigtermEnds(t, r) })
}

// warnOfTestProvider checks that an operator who set no provider reads that no money is taken.
func warnOfTestProvider(t *testing.T, r *installation.Installation) {
	for _, p := range r.APIs {
		require.Equal(t, 1, p.CountLogLines("WARN", "SECKILL_PAYMENT_PROVIDER is test"), p.Log())
	}
}

// processors checks that consumers use a part of the processors that the APIs use.
func processors(t *testing.T, r *installation.Installation) {
	const used = "go_sched_gomaxprocs_threads"
	all := int(r.APIs[0].Metric(t, used))
	require.Positive(t, all)
	want := orderwriter.Processors(all)
	if os.Getenv("GOMAXPROCS") != "" {
		want = all
	}
	for _, p := range r.Consumers {
		require.EqualValues(t, want, p.Metric(t, used))
	}
}

// sigtermEnds stops every program while the first API has a buyer that waits for a permit and a
// buyer that follows an order. Both get an answer, and every program exits with 0.
func sigtermEnds(t *testing.T, r *installation.Installation) {
	goods := must.Get(r.Merchant(t).PutUp(t.Context(), apiclient.NewSale{
		Title: "a kettle", Price: 1999, Stock: 9, StartAt: time.Now().Add(-time.Minute).UTC(),
		EndAt: time.Now().Add(time.Hour).UTC(),
		Rate:  &apiclient.Rate{PermitsPerSecond: 0.02, MaxBurstSeconds: 50, MaxWaitMillis: 60_000},
	}))(t)
	const allowed = `seckill_limiter_events_total{event="allowed",rule="randomPath"}`
	before := r.APIs[0].Metric(t, allowed)
	events := follow(t, r, r.Buyer(t, 1), goods)
	require.Equal(t, before+1, r.APIs[0].Metric(t, allowed))
	var waiting sync.WaitGroup
	var answer apiclient.Answer
	var err error
	second := r.Buyer(t, 2)
	waiting.Go(func() {
		answer, err = second.Call(t.Context(), "POST", "/randomPath?goodsId="+goods, nil)
	})
	require.Eventually(t, func() bool { return r.APIs[0].Metric(t, allowed) == before+2 },
		time.Minute, 10*time.Millisecond, "the second buyer waits for a permit")
	for _, p := range append(r.APIs, r.Consumers...) {
		require.NoError(t, p.Stop(), "%s", p.Log())
	}
	waiting.Wait()
	require.NoError(t, err, "the API must answer a buyer that waits")
	require.Equal(t, http.StatusServiceUnavailable, answer.Status, answer.Message)
	require.Positive(t, answer.RetryAfter)
	_, err = io.ReadAll(events)
	require.NoError(t, err, "the API must close the stream in order")
}

// follow purchases one unit and returns the events of the order.
func follow(
	t *testing.T, r *installation.Installation, buyer apiclient.Client, goods string,
) io.Reader {
	var path struct{ RandomPath string }
	require.NoError(t, buyer.Do(t.Context(), "POST", "/randomPath?goodsId="+goods, nil, &path))
	var queued struct{ OrderSn string }
	require.Eventually(t, func() bool { // a busy machine may need more than one deadline
		return buyer.Do(t.Context(), "POST",
			"/"+path.RandomPath+"/decrStock?goodsId="+goods, nil, &queued) == nil
	}, time.Minute, 10*time.Millisecond)
	req := must.Get(http.NewRequestWithContext(t.Context(), "GET",
		r.Base(0)+"/orders/"+queued.OrderSn+"/events", nil))(t)
	req.Header.Set("Authorization", "Bearer "+buyer.Token)
	resp := must.Get(http.DefaultClient.Do(req))(t)
	t.Cleanup(func() { _ = resp.Body.Close() })
	require.Equal(t, http.StatusOK, resp.StatusCode)
	return resp.Body
}

func rushOneEach(t *testing.T, r *installation.Installation) {
	rushSells(t, r, 1000, 1, buyers.Plan{Concurrency: 200})
}

// rushSells runs a rush of five thousand buyers. It requires that every unit is sold, and that each
// winner holds one order of the plan's quantity.
func rushSells(t *testing.T, r *installation.Installation, units, limit int64, p buyers.Plan) {
	p.Buyers, p.Quantity = 5000, max(1, p.Quantity)
	got, orders := rushFor(t, r, r.PutUp(t, units, limit), p), units/p.Quantity
	got.requireSoldOut(t, units, orders, orders)
	require.Equal(t, p.Quantity, got.facts.MostHeld)
}

// rushDoubledMessages repeats the rush of TestRush_SameOrdersOnMySQL. Each message arrives twice.
func rushDoubledMessages(t *testing.T, r *installation.Installation) {
	doubled := r.DoubleMessages(t)
	rushOneEach(t, r)
	require.Positive(t, doubled.Load(), "no message was doubled")
}

// TestRush_SameOrdersOnMySQL sells a thousand units with Oracle's MySQL as the database.
func TestRush_SameOrdersOnMySQL(t *testing.T) {
	rushOneEach(t, installation.Start(t, suite,
		installation.Options{APIs: 2, Consumers: 2, DSN: suite.MySQL(t).NewDatabase(t)}))
}
