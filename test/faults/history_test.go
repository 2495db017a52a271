package faults

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/loadgen/buyer"
	"flashsale.dev/seckill/test/faults/check"
)

// emptied counts what is in the queues, and looks again while there is something: the broker's numbers are up to five
// seconds old.
func (s *scene) emptied(t *testing.T) (queued, dead int) {
	t.Helper()
	for began := time.Now(); time.Since(began) < 15*time.Second; time.Sleep(200 * time.Millisecond) {
		var err error
		queued, dead, err = s.Queues(t)
		require.NoError(t, err)
		if queued == 0 {
			break
		}
	}
	return queued, dead
}

// history records what everybody says.
func (s *scene) history(t *testing.T, report buyer.Report) check.History {
	t.Helper()
	queued, dead := s.emptied(t)
	facts := s.Facts(t, s.goods)
	l, err := s.ledger(t)
	require.NoError(t, err)
	f, err := s.RedisFacts(t, s.redis, s.goods)
	require.NoError(t, err)
	h := check.History{
		Sale: check.Sale{Units: s.units, Stock: facts.Stock, Total: facts.Total}, Held: s.Held(t, s.goods), RedisHeld: f.Held,
		MovesNotGiven: int(facts.NotGiven + facts.OpenCuts), Queued: queued, DeadQueued: dead, DeadLetters: s.DeadLetters(t),
		Redis: check.Redis{
			Total: l.Total, Available: l.Available, Pending: l.Pending, Sold: l.Sold, Balanced: l.Balanced,
			PendingEntries: int(f.Pending), OutboxEntries: int(f.Outbox),
		},
	}
	for _, o := range s.OrderRows(t, s.goods) {
		h.Rows = append(h.Rows, check.Row{OrderSn: o.OrderSn, BuyerID: o.BuyerID, Quantity: o.Quantity, Status: o.Status})
	}
	h.Buyers = append(h.Buyers, s.planted...)
	for _, told := range report.Told {
		h.Buyers = append(h.Buyers, checkedBuyer(told))
	}
	return h
}

// asksAgain asks, as the buyers, what has become of the promises that MySQL does not keep.
func (s *scene) asksAgain(t *testing.T, h check.History) map[string]string {
	t.Helper()
	kept := make(map[string]bool)
	for _, r := range h.Rows {
		kept[r.OrderSn] = r.Status != "failed"
	}
	final := make(map[string]string)
	for _, b := range h.Buyers {
		for _, p := range b.Heard {
			if _, asked := final[p.OrderSn]; !asked && !kept[p.OrderSn] {
				final[p.OrderSn] = s.status(t, b.ID, p.OrderSn)
			}
		}
	}
	return final
}

// status is an order's, as the API tells its buyer, or the reason why it does not.
func (s *scene) status(t *testing.T, buyer int64, sn string) string {
	t.Helper()
	c := s.Buyer(t, buyer)
	defer c.HTTP.CloseIdleConnections()
	a, err := c.Call(t.Context(), http.MethodGet, "/orders/"+sn, nil)
	require.NoError(t, err)
	var order struct {
		Status string `json:"status"`
	}
	if a.Into(&order) != nil {
		return a.Reason
	}
	return order.Status
}

func checkedBuyer(t buyer.Told) check.Buyer {
	b := check.Buyer{ID: t.BuyerID, Paths: t.Paths, Faults: t.Faults, Unsaid: t.Unsaid}
	for _, heard := range t.Heard {
		b.Heard = append(b.Heard, check.Promise{Path: heard.Path, OrderSn: heard.OrderSn, Asked: heard.Asked, At: heard.At})
	}
	for _, seen := range t.Seen {
		b.Seen = append(b.Seen, seen.Status)
	}
	return b
}
