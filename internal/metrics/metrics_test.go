package metrics

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/orderwriter"
	"flashsale.dev/seckill/internal/order/rebuild"
	"flashsale.dev/seckill/internal/order/reconcile"
	"flashsale.dev/seckill/internal/rabbit"
	"flashsale.dev/seckill/internal/ratelimit/gate"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/reservation"
)

func scrape(r *Registry) string {
	w := httptest.NewRecorder()
	r.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	return w.Body.String()
}

func TestAPI_ExportsWhatItCounts(t *testing.T) {
	api := NewAPI("v1 abc")
	observe := api.Route("/randomPath")
	observe("SOLD_OUT", 2*time.Millisecond)
	observe("SOLD_OUT", 2*time.Millisecond)
	observe("TEAPOT", time.Millisecond)
	api.Count("randomPath", gate.EventDenied)
	api.Count("randomPath", gate.EventDenied)
	api.Reservations.Reserved(3, []reservation.Verdict{
		{Code: reservation.Taken},
		{Code: reservation.TooFew},
		{Code: reservation.Taken},
	}, time.Millisecond, nil)
	api.Reservations.Reserved(2, nil, time.Millisecond, &seckill.GateError{State: seckill.GateShut})
	api.Reservations.Reserved(1, nil, time.Millisecond, errors.New("away"))
	for _, err := range []error{
		nil, rabbit.ErrUnconfirmed,
		fmt.Errorf("wait: %w", context.DeadlineExceeded), errors.New("?"),
	} {
		api.Publishing.Outcome(time.Millisecond, time.Millisecond, err)
	}
	text := scrape(api.Registry)
	for _, line := range []string{
		`seckill_build_info{version="v1 abc"} 1`,
		`seckill_http_requests_total{reason="SOLD_OUT",route="/randomPath"} 2`,
		`seckill_http_requests_total{reason="TEAPOT",route="/randomPath"} 1`,
		`seckill_http_request_duration_seconds_bucket{route="/randomPath",le="0.0025"} 3`,
		`seckill_limiter_events_total{event="denied",rule="randomPath"} 2`,
		`seckill_limiter_events_total{event="allowed",rule="randomPath"} 0`,
		`seckill_reservations_total{outcome="taken"} 2`,
		`seckill_reservations_total{outcome="too_few"} 1`,
		`seckill_reservations_total{outcome="gate"} 2`,
		`seckill_reservations_total{outcome="error"} 1`,
		`seckill_publishes_total{outcome="confirmed"} 1`,
		`seckill_publishes_total{outcome="disconnected"} 1`,
		`seckill_publishes_total{outcome="timeout"} 1`,
		`seckill_publishes_total{outcome="failed"} 1`, `seckill_publish_duration_seconds_count 4`,
		"go_goroutines", "process_resident_memory_bytes",
	} {
		require.Contains(t, text, line)
	}
}

func TestConsumer_ExportsWhatItCounts(t *testing.T) {
	c := NewConsumer("")
	c.Writes.Wrote(order.Outcome{
		Created:  []string{"a", "b"},
		Failed:   map[string]order.FailureReason{"c": order.FailedOversold},
		Existing: map[string]order.Status{"d": order.Paid},
	}, time.Millisecond)
	for range 3 {
		c.Writes.Wrote(order.Outcome{}, 20*time.Millisecond) // a transaction on an idle machine
	}
	c.Writes.DeadLettered(order.FailedMalformed)
	c.Writes.Retried(orderwriter.RetrySwap)
	c.Repairs.Relayed(3)
	c.Repairs.Reconciled(
		reconcile.Report{Found: seckill.Differences{Unsettled: 2, Totals: 1}, Repaired: 2})
	c.Repairs.Rebuilt(rebuild.Result{Shut: time.Second, Lost: 1})
	require.NotContains(t, scrape(c.Registry), "seckill_sales{",
		"sale metrics appear before the first sample")
	c.Repairs.Sampled(reconcile.Sample{
		Waiting: reconcile.Waiting{DeadLetters: 4, Parked: 3},
		Memory:  reconcile.Memory{Used: 7, Most: 9},
		Sales: []reconcile.SaleSample{
			{
				GoodsID: 42, OnSale: true, Accounted: true, Outbox: 2, OutboxAge: time.Second,
				Ledger: seckill.Ledger{Total: 10, Available: 5, Pending: 1, Sold: 2},
			},
			{GoodsID: 41, OnSale: true, Gate: seckill.GateLease, PendingAge: 3 * time.Second},
			{GoodsID: 40, Accounted: true, Ledger: seckill.Ledger{
				Total: 1, Sold: 1, Balanced: true,
				Database: seckill.Database{Active: 3},
			}},
		},
	})
	text := scrape(c.Registry)
	for _, line := range []string{
		`seckill_orders_written_total{outcome="created"} 2`,
		`seckill_orders_written_total{outcome="existing"} 1`,
		`seckill_dead_letters_total{reason="no_stock"} 1`,
		`seckill_dead_letters_total{reason="malformed"} 1`,
		`seckill_write_duration_seconds_bucket{le="0.01"} 1`,
		`seckill_write_duration_seconds_bucket{le="0.025"} 4`,
		`seckill_write_retries_total{cause="cas"} 1`, `seckill_write_batch_size_sum 4`,
		`seckill_outbox_relayed_entries_total 3`, `seckill_reconcile_repaired_total 2`,
		`seckill_reconcile_differences_total{difference="unsettled"} 2`,
		`seckill_reconcile_differences_total{difference="totals"} 1`, `seckill_rebuilds_total 1`,
		`seckill_rebuild_lost_orders_total 1`, `seckill_sales{gate="open"} 1`,
		`seckill_sales{gate="lease_lost"} 1`, `seckill_sales{gate="over"} 1`,
		`seckill_sales{gate="missing"} 0`, `seckill_ledger_difference_units 2`,
		`seckill_ledger_unbalanced_sales 1`, `seckill_oversold_units 2`,
		`seckill_outbox_oldest_seconds 1`, `seckill_pending_oldest_seconds 3`,
		`seckill_dead_letters_waiting 4`, `seckill_parked_orders 3`,
		`seckill_redis_memory_used_bytes 7`,
		`seckill_sale_available_units{goods_id="42"} 5`, `seckill_sale_gate_open{goods_id="41"} 0`,
	} {
		require.Contains(t, text, line)
	}
}

// TestSales_OldSampleIsForgotten checks that a consumer which alone lost Redis does not report its
// last figures for ever: alerts take the maximum of all consumers.
func TestSales_OldSampleIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewConsumer("")
		c.Repairs.Sampled(reconcile.Sample{Waiting: reconcile.Waiting{DeadLetters: 4}})
		time.Sleep(sampleLife)
		require.Contains(t, scrape(c.Registry), "seckill_dead_letters_waiting 4")
		time.Sleep(time.Second)
		text := scrape(c.Registry)
		require.NotContains(t, text, "seckill_dead_letters_waiting")
		require.Contains(t, text, "seckill_sample_timestamp_seconds ", "SeckillBlind reads it")
	})
}

func TestSales_OnlyTheNewestHaveGauges(t *testing.T) {
	c := NewConsumer("")
	var found reconcile.Sample
	for id := int64(200); id > 0; id-- {
		found.Sales = append(found.Sales, reconcile.SaleSample{GoodsID: id})
	}
	c.Repairs.Sampled(found)
	text := scrape(c.Registry)
	require.Equal(t, 50, strings.Count(text, "seckill_sale_sold_units{"))
	require.Contains(t, text, `goods_id="200"`)
	require.NotContains(t, text, `goods_id="150"`)
}

func TestAPI_CountingAllocatesNothing(t *testing.T) {
	api := NewAPI("")
	observe := api.Route("/randomPath")
	api.Count("user", gate.EventAllowed)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		observe("SOLD_OUT", time.Millisecond)
		api.Count("user", gate.EventAllowed)
	}))
}
