package app_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/seckill/reservation"
	"flashsale.dev/seckill/internal/testing/must"
)

// dies writes an order as failed, as the consumer does. It returns the order number and the id of
// the dead letter.
func (h *fixture) dies(goods string, buyer, quantity int64) (sn, deadLetterID string) {
	id := h.id(goods)
	sn = h.issued(id, buyer)
	line := reservation.OrderLine{
		OrderSn: sn, BuyerID: fmt.Sprint(buyer), Quantity: quantity, Epoch: 1,
		Name: "Ann Lee", Phone: "+4479460123456",
	}
	_, err := h.Store.WriteFailed(h.t.Context(), line, order.DeadLetter{
		GoodsID: id, Reason: order.FailedUnwritten, Origin: "seckill.orders.1",
	}, time.Now())
	require.NoError(h.t, err)
	all := h.deadLetters()
	i := slices.IndexFunc(all, func(d deadLetter) bool { return d.OrderSn == sn })
	require.GreaterOrEqual(h.t, i, 0, "no dead letter of the failed order")
	return sn, all[i].ID
}

type deadLetter struct{ ID, OrderSn, GoodsID, Reason, Origin string }

func (h *fixture) deadLetters() []deadLetter {
	r := h.does(operator(), "GET", "/admin/dead-letters?limit=100", "")
	require.NotContains(h.t, r.Body, `"Ann`)
	return dataOf[struct{ Items []deadLetter }](h.t, r).Items
}

// TestDeadLetters_ShowTheOrder checks what an operator sees of a dead letter of a sale, and of one
// whose message is unreadable.
func TestDeadLetters_ShowTheOrder(t *testing.T) {
	h := open(t)
	goods := h.exposed("5", "2")
	h.dies(goods, 1, 2)
	require.NoError(t, h.Store.AddDeadLetter(t.Context(), order.DeadLetter{
		ID: "01a1fc15-9a10-78e6-83a6-b45fac893a06", Reason: order.FailedMalformed,
		Origin: "seckill.orders.1", FirstSeenAt: time.Now(), Body: []byte("Ann{"),
	}))
	raw := h.does(operator(), "GET", "/admin/dead-letters", "").Body
	price := dataOf[struct{ Price int64 }](t,
		h.does(merchant(), "GET", "/admin/sales/"+goods, "")).Price
	require.Contains(t, raw,
		`"buyerId":"1","name":"A***","phoneNumber":"**********3456","quantity":2`)
	require.Contains(t, raw, fmt.Sprintf(`"currency":"CNY","amount":%d`, 2*price))
	require.Contains(t, raw, `"reason":"MALFORMED","attempts":0`)
	require.Equal(t, 1, strings.Count(raw, `"title"`))
	require.NotContains(t, raw, "+44")
}

func TestDeadLetter_IsRequeuedOnce(t *testing.T) {
	h := open(t)
	goods := h.exposed("5", "2")
	sn, id := h.dies(goods, 1, 2)
	h.becomes(buyer(1), sn, "failed")
	var g errgroup.Group
	var good atomic.Int64
	for range 6 { // concurrently
		g.Go(func() error {
			if r := h.as(operator(), "POST", "/admin/dead-letters/"+id+"/requeue",
				""); r.Status == 200 {
				good.Add(1)
				require.Contains(t, r.Body, `"status":"created"`)
			} else {
				require.Contains(t, []int{http.StatusNotFound, http.StatusServiceUnavailable},
					r.Status, r.Body)
			}
			return nil
		})
	}
	require.NoError(t, g.Wait())
	require.Positive(t, good.Load())
	h.becomes(buyer(1), sn, "created")
	require.Empty(t, h.deadLetters())
	h.refuses("NOT_FOUND", operator(), "POST", "/admin/dead-letters/"+id+"/requeue", "")
	require.Equal(t, "LIMIT_REACHED", h.tries(buyer(1), goods, "1").Reason,
		"the requeued units must count for the buyer")
	l := h.ledger(goods)
	require.EqualValues(t, []int64{3, 2}, []int64{l.Available, l.Sold})
	require.EqualValues(t, []int64{3, 2}, []int64{l.Database.Stock, l.Database.Active})
}

func TestDeadLetter_ConflictsWhereNoUnitsAreLeft(t *testing.T) {
	h := open(t)
	goods := h.exposed("3", "2")
	sn, id := h.dies(goods, 1, 2)
	h.buys(buyer(2), goods, "2")
	r := h.refuses("CONFLICT", operator(), "POST", "/admin/dead-letters/"+id+"/requeue", "")
	require.JSONEq(t, `{"available":1}`, string(r.Data))
	h.becomes(buyer(1), sn, "failed")
	l := h.ledger(goods)
	require.EqualValues(t, []int64{1, 2, 0}, []int64{l.Available, l.Sold, l.Pending})
	h.does(operator(), "DELETE", "/admin/dead-letters/"+id, "")
	h.refuses("NOT_FOUND", operator(), "DELETE", "/admin/dead-letters/"+id, "")
	h.becomes(buyer(1), sn, "failed")
}

// TestDeadLetter_RequeueLeftBehindReturnsItsUnits stops a requeue after it took the units and
// before it wrote the order. The stock move that it recorded first returns the units.
func TestDeadLetter_RequeueLeftBehindReturnsItsUnits(t *testing.T) {
	h := open(t)
	goods := h.exposed("5", "2")
	id := h.id(goods)
	sn, _ := h.dies(goods, 1, 2)
	line := reservation.OrderLine{OrderSn: sn, BuyerID: "1", Quantity: 2}
	h.eventually(func() bool {
		m, err := h.Store.MovesOfOrder(t.Context(), id, sn)
		return err == nil && len(m) == 0
	}, "the failed order's units were not released")
	undo := must.Get(h.Store.ScheduleRelease(t.Context(), id, line,
		time.Now().Add(10*time.Second)))(t) // later than the next line, also on a busy machine
	require.Positive(t, must.Get(h.RedisStore.Retake(t.Context(), id, undo.Epoch, 2, line))(t))
	h.exact(goods, 5, 5, 0)
}

func TestDeadLetters_UnknownAndMalformedOnesAreNotRequeued(t *testing.T) {
	h := open(t)
	require.NoError(t, h.Store.AddDeadLetter(t.Context(),
		order.DeadLetter{Reason: order.FailedMalformed, Origin: "q", Body: []byte("\xff")}))
	malformed := h.deadLetters()[0].ID
	for id, reason := range map[string]string{
		"x": "NOT_FOUND", strings.Repeat("0", 36): "NOT_FOUND", malformed: "CONFLICT",
		"01a1fc15-9a10-78e6-83a6-b45fac893a06": "NOT_FOUND",
	} {
		h.refuses(reason, operator(), "POST", "/admin/dead-letters/"+id+"/requeue", "")
	}
	require.Len(t, h.deadLetters(), 1)
}
