package faults

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/ordersn"
	"flashsale.dev/seckill/internal/testing/buyers"
	"flashsale.dev/seckill/internal/testing/must"
	"flashsale.dev/seckill/test/faults/check"
)

// awaitEmptyQueues counts the messages in the queues, and repeats that while there are any: the
// last acknowledgements may be on their way.
func (r *run) awaitEmptyQueues(t *testing.T) (queued, dead int) {
	t.Helper()
	for began := time.Now(); ; time.Sleep(200 * time.Millisecond) {
		queued, dead, err := r.Queues(t)
		require.NoError(t, err)
		if queued == 0 || time.Since(began) > 15*time.Second {
			return queued, dead
		}
	}
}

// history collects the answers to buyers, and the contents of MySQL, Redis and the queues.
func (r *run) history(t *testing.T, report buyers.Report) check.History {
	h := r.records(t, report)
	h.Queued, h.DeadQueued = r.awaitEmptyQueues(t)
	return h
}

// records is the history without the queues, which all sales share.
func (r *run) records(t *testing.T, report buyers.Report) check.History {
	facts := r.Facts(t, r.goods)
	l := must.Get(r.ledger(t))(t)
	f := must.Get(r.RedisFacts(t, r.redis, r.goods))(t)
	h := check.History{
		Sale: check.Sale{
			Units: r.units, Limit: 1, StartAt: r.start, EndAt: r.end, Stock: facts.Stock,
			Total: facts.Total,
		},
		Buyers:       slices.Concat(r.extraBuyers, report.Results),
		Holdings:     r.Held(t, r.goods),
		PendingMoves: int(facts.Unreleased + facts.OpenCuts),
		DeadLetters:  r.DeadLetters(t),
		Redis: check.Redis{
			Total: l.Total, Available: l.Available, Pending: l.Pending, Sold: l.Sold,
			Balanced: l.Balanced, PendingEntries: int(f.Pending), OutboxEntries: int(f.Outbox),
			Holdings: f.Held,
		},
	}
	for _, o := range r.OrderRows(t, r.goods) {
		h.Rows = append(h.Rows, check.Row(o))
	}
	return h
}

// finalStatuses asks the API for each promised order that MySQL lacks or has as failed.
func (r *run) finalStatuses(t *testing.T, h check.History) map[string]string {
	kept := make(map[string]bool)
	for _, row := range h.Rows {
		kept[row.OrderSn] = row.Status != "failed"
	}
	final := make(map[string]string)
	for _, b := range h.Buyers {
		for _, p := range b.Accepted {
			if _, asked := final[p.OrderSn]; !asked && !kept[p.OrderSn] {
				final[p.OrderSn] = r.status(t, b.BuyerID, p.OrderSn)
			}
		}
	}
	return final
}

// status is an order's status as the API answers its buyer, or the reason of an error. A lost order
// is queued until its path has expired and its message cannot be on its way.
func (r *run) status(t *testing.T, buyer int64, sn string) string {
	c := r.Buyer(t, buyer)
	defer c.HTTP.CloseIdleConnections()
	for until := time.Now().Add(2 * ordersn.PathTTL); ; time.Sleep(50 * time.Millisecond) {
		a := must.Get(c.Call(t.Context(), http.MethodGet, "/orders/"+sn, nil))(t)
		var order struct{ Status string }
		if a.Into(&order) != nil {
			return a.Reason
		}
		if order.Status != "queued" || time.Now().After(until) {
			return order.Status
		}
	}
}
