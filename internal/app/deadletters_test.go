package app_test

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/reservation"
)

// dies writes an order of a buyer as failed, as the consumer does, and gives its number and the id of its dead letter.
func (h *fixture) dies(goods string, buyer, quantity int64) (sn, deadLetter string) {
	h.t.Helper()
	id, err := strconv.ParseInt(goods, 10, 64)
	require.NoError(h.t, err)
	sn = h.issued(id, buyer)
	line := reservation.OrderLine{OrderSn: sn, BuyerID: buyer, Quantity: quantity, Epoch: 1, Name: "Ann Lee", Phone: "+4479460123456"}
	_, err = h.Store.WriteFailed(h.t.Context(), id, line, order.FailedUnwritten, order.DeadLetter{Origin: "seckill.orders.1"}, time.Now())
	require.NoError(h.t, err)
	for _, d := range h.deadLetters() {
		if d.OrderSn == sn {
			return sn, d.ID
		}
	}
	require.Fail(h.t, "no deadLetter of the failed order")
	return "", ""
}

type deadLetter struct{ ID, OrderSn, GoodsID, Reason, Origin string }

func (h *fixture) deadLetters() []deadLetter {
	h.t.Helper()
	r := h.as(operator(), "GET", "/admin/dead-letters?limit=100", "")
	require.Equal(h.t, 200, r.Status, r.raw)
	require.NotContains(h.t, r.raw, "Ann")
	var list struct{ Items []deadLetter }
	require.NoError(h.t, json.Unmarshal(r.Data, &list))
	return list.Items
}

func TestADeadLetterIsRequeuedOnce(t *testing.T) {
	h := open(t)
	goods := h.exposed("5", "2")
	sn, id := h.dies(goods, 1, 2)
	h.becomes(buyer(1), sn, "failed")
	var g errgroup.Group
	var good atomic.Int64
	for range 6 { // all at once
		g.Go(func() error {
			if r := h.as(operator(), "POST", "/admin/dead-letters/"+id+"/requeue", ""); r.Status == 200 {
				good.Add(1)
				require.Contains(t, r.raw, `"status":"created"`)
			} else {
				require.Contains(t, []int{http.StatusNotFound, http.StatusServiceUnavailable}, r.Status, r.raw)
			}
			return nil
		})
	}
	require.NoError(t, g.Wait())
	require.Positive(t, good.Load())
	h.becomes(buyer(1), sn, "created")
	require.Empty(t, h.deadLetters())
	require.Equal(t, "NOT_FOUND", h.as(operator(), "POST", "/admin/dead-letters/"+id+"/requeue", "").Reason)
	require.Equal(t, "LIMIT_REACHED", h.tries(buyer(1), goods, "1").Reason, "its units are the buyer's")
	l := h.ledger(goods)
	require.EqualValues(t, []int64{3, 2}, []int64{l.Available, l.Sold})
	require.EqualValues(t, []int64{3, 2}, []int64{l.Database.Stock, l.Database.Active})
}

func TestADeadLetterForWhichNothingIsLeft(t *testing.T) {
	h := open(t)
	goods := h.exposed("3", "2")
	sn, id := h.dies(goods, 1, 2)
	h.buys(buyer(2), goods, "2")
	r := h.as(operator(), "POST", "/admin/dead-letters/"+id+"/requeue", "")
	require.Equal(t, "CONFLICT", r.Reason, r.raw)
	require.JSONEq(t, `{"available":1}`, string(r.Data))
	h.becomes(buyer(1), sn, "failed")
	l := h.ledger(goods)
	require.EqualValues(t, []int64{1, 2, 0}, []int64{l.Available, l.Sold, l.Pending})
	require.Equal(t, 200, h.as(operator(), "DELETE", "/admin/dead-letters/"+id, "").Status)
	require.Equal(t, "NOT_FOUND", h.as(operator(), "DELETE", "/admin/dead-letters/"+id, "").Reason)
	h.becomes(buyer(1), sn, "failed")
}

// Who took the units and died before the order was written leaves a move that gives them back.
func TestARequeueLeftBehindGivesItsUnitsBack(t *testing.T) {
	h := open(t)
	goods := h.exposed("5", "2")
	id, err := strconv.ParseInt(goods, 10, 64)
	require.NoError(t, err)
	sn, _ := h.dies(goods, 1, 2)
	line := reservation.OrderLine{OrderSn: sn, BuyerID: 1, Quantity: 2}
	h.eventually(func() bool { m, err := h.Store.MovesOfOrder(t.Context(), id, sn); return err == nil && len(m) == 0 }, "given back")
	undo, err := h.Store.ScheduleRelease(t.Context(), id, line, time.Now().Add(3*time.Second))
	require.NoError(t, err)
	took, err := h.RedisStore.Adopt(t.Context(), id, undo.Epoch, 0, []reservation.OrderLine{line})
	require.NoError(t, err)
	require.Positive(t, took[sn])
	h.exact(goods, 5, 5, 0)
}

func TestDeadLettersAreForOperatorsAlone(t *testing.T) {
	h := open(t)
	goods := h.exposed("5", "2")
	_, id := h.dies(goods, 1, 1)
	require.NoError(t, h.Store.AddDeadLetter(t.Context(), order.DeadLetter{Reason: order.FailedMalformed, Origin: "q", Body: []byte("\xff")}))
	for _, c := range [][2]string{{"GET", ""}, {"POST", "/" + id + "/requeue"}, {"DELETE", "/" + id}} {
		for _, who := range []seckill.Actor{buyer(1), merchant()} {
			require.Equal(t, "FORBIDDEN", h.as(who, c[0], "/admin/dead-letters"+c[1], "").Reason)
		}
		require.Equal(t, "UNAUTHENTICATED", h.as(seckill.Actor{}, c[0], "/admin/dead-letters"+c[1], "").Reason)
	}
	for _, none := range []string{"x", strings.Repeat("0", 36), "01a1fc15-9a10-78e6-83a6-b45fac893a06"} {
		require.Equal(t, "NOT_FOUND", h.as(operator(), "POST", "/admin/dead-letters/"+none+"/requeue", "").Reason)
	}
	for _, d := range h.deadLetters() {
		if d.Reason == "MALFORMED" {
			require.Equal(t, "CONFLICT", h.as(operator(), "POST", "/admin/dead-letters/"+d.ID+"/requeue", "").Reason)
		}
	}
	require.Len(t, h.deadLetters(), 2)
}
