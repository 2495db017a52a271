package sqlstore

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/payment"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/salechange"
	"flashsale.dev/seckill/internal/testing/must"
)

// seller is a context of the merchant, whom the audit log names.
func seller(t *testing.T) context.Context {
	return seckill.WithActor(t.Context(), seckill.Actor{ID: "70", Role: seckill.Merchant})
}

// actions returns the seller's changes of a sale's orders in its audit log, the oldest first.
func (h fixture) actions(goodsID int64) (made []salechange.Action) {
	h.t.Helper()
	for _, e := range h.auditOf(goodsID, 100) {
		if e.Became["orderSn"] != nil || e.Action == salechange.ActExportOrders {
			require.Equal(h.t, "70", e.ActorID)
			require.Equal(h.t, seckill.Merchant, e.Role)
			made = append([]salechange.Action{e.Action}, made...)
		}
	}
	return made
}

// TestRefund_ReturnsUnitsAndMoneyOnce checks that the units and the payment of a paid order leave
// it in one transaction. A repetition and a buyer's cancellation change nothing more.
func (h fixture) TestRefund_ReturnsUnitsAndMoneyOnce(t *testing.T) {
	sale := h.exposed(10, 5)
	paid, created := h.writeOrder(sale, 1), h.writeOrder(sale, 2)
	now := today.Add(5 * time.Minute)
	p := h.payment(sale, "p-1", paid)
	must.Get(h.receiveOne(p, now))(t)

	done := must.Get(h.CancelForMerchant(seller(t), sale.GoodsID, created, order.Paid, now))(t)
	requireConflict(t, done.Err, "it is not paid")
	done = must.Get(h.CancelForMerchant(seller(t), sale.GoodsID, paid, order.Created, now))(t)
	requireConflict(t, done.Err, "it is paid")
	require.Empty(t, must.Get(h.DueRefunds(t.Context(), now, 10))(t))

	done = must.Get(h.CancelForMerchant(seller(t), sale.GoodsID, paid, order.Paid, now))(t)
	require.NoError(t, done.Err)
	require.Equal(t, order.Cancelled, done.Order.Status)
	require.EqualValues(t, 1, done.Move.Quantity)
	refund := payment.Refund{Payment: p, Reason: payment.RefundByMerchant, NextAt: now}
	require.Equal(t, []payment.Refund{refund}, must.Get(h.DueRefunds(t.Context(), now, 10))(t))
	for range 2 {
		again := must.Get(h.CancelForMerchant(seller(t), sale.GoodsID, paid, order.Paid, now))(t)
		require.NoError(t, again.Err)
		require.Nil(t, again.Move)
		require.Equal(t, order.Cancelled, again.Order.Status)
	}
	r := must.Get(h.receiveOne(p, now))(t)
	require.Equal(t, payment.Refunding, r.State, "the provider repeats its report")
	require.Equal(t, order.Cancelled, r.Order.Status)

	done = must.Get(h.CancelForMerchant(seller(t), sale.GoodsID, created, order.Created, now))(t)
	require.NoError(t, done.Err)
	require.NotNil(t, done.Move)
	done = must.Get(h.CancelForMerchant(seller(t), sale.GoodsID, created, order.Paid, now))(t)
	requireConflict(t, done.Err, "it was never paid")
	done = must.Get(h.CancelForMerchant(seller(t), sale.GoodsID, "0", order.Created, now))(t)
	require.ErrorIs(t, done.Err, order.ErrNoSuchOrder)
	require.Equal(t,
		[]salechange.Action{salechange.ActRefundOrder, salechange.ActCancelOrder},
		h.actions(sale.GoodsID), "refused changes leave no entry")
	h.requireBalanced(sale.GoodsID)
}

// TestShip_IsForPaidOrders checks that only a paid order is shipped, and that a shipped one is
// neither refunded nor sent elsewhere.
func (h fixture) TestShip_IsForPaidOrders(t *testing.T) {
	sale := h.exposed(10, 5)
	paid, created := h.writeOrder(sale, 1), h.writeOrder(sale, 2)
	now := today.Add(5 * time.Minute)
	must.Get(h.receiveOne(h.payment(sale, "p-1", paid), now))(t)
	first := order.Shipment{Carrier: "邮政", TrackingNumber: "T-1"}
	_, err := h.Ship(seller(t), sale.GoodsID, created, first, now)
	requireConflict(t, err)
	_, err = h.Ship(seller(t), sale.GoodsID, "0", first, now)
	require.ErrorIs(t, err, order.ErrNoSuchOrder)

	o := must.Get(h.SetAddress(t.Context(), sale.GoodsID, paid, "~1.sealed"))(t)
	require.Equal(t, "~1.sealed", o.Address)
	require.Equal(t, "~1.sealed", h.order(sale.GoodsID, paid).Address)
	for range 2 {
		o = must.Get(h.Ship(seller(t), sale.GoodsID, paid, first, now))(t)
		require.Equal(t, now, o.ShippedAt.UTC())
	}
	second := order.Shipment{Carrier: "UPS"}
	later := now.Add(time.Hour)
	o = must.Get(h.Ship(seller(t), sale.GoodsID, paid, second, later))(t)
	require.Equal(t, now, o.ShippedAt.UTC(), "when it was first sent")
	require.Equal(t, second, o.Shipment)
	require.Equal(t, o, h.order(sale.GoodsID, paid))

	done := must.Get(h.CancelForMerchant(seller(t), sale.GoodsID, paid, order.Paid, later))(t)
	requireConflict(t, done.Err)
	_, err = h.SetAddress(t.Context(), sale.GoodsID, paid, "~1.another")
	requireConflict(t, err)
	require.Equal(t, "~1.sealed", h.order(sale.GoodsID, paid).Address)
	must.Get(h.CancelOne(sale.GoodsID, created, now))(t)
	_, err = h.SetAddress(t.Context(), sale.GoodsID, created, "~1.another")
	requireConflict(t, err)
	_, err = h.SetAddress(t.Context(), sale.GoodsID, "0", "~1.another")
	require.ErrorIs(t, err, order.ErrNoSuchOrder)
	require.NoError(t, h.RecordReveal(seller(t), o, later))
	require.NoError(t, h.RecordExport(seller(t), sale.GoodsID, later))
	require.Equal(t, []salechange.Action{
		salechange.ActShipOrder, salechange.ActShipOrder, salechange.ActRevealOrder,
		salechange.ActExportOrders,
	}, h.actions(sale.GoodsID))
	h.requireBalanced(sale.GoodsID)
}

// TestOrders_EraseABuyersData runs the statement of the operator's page.
func (h fixture) TestOrders_EraseABuyersData(t *testing.T) {
	page := string(must.Get(os.ReadFile("../../docs/how-to/operate.md"))(t))
	_, rest, _ := strings.Cut(page, "## Erase a buyer's data")
	_, rest, _ = strings.Cut(rest, "```sql\n")
	statement, _, _ := strings.Cut(rest, "```")
	sale := h.exposed(10, 2)
	paid, open, other := h.writeOrder(sale, 1), h.writeOrder(sale, 1), h.writeOrder(sale, 2)
	must.Get(h.receiveOne(h.payment(sale, "p-1", paid), today))(t)
	must.Get(h.SetAddress(t.Context(), sale.GoodsID, paid, "~1.sealed"))(t)
	shipment := order.Shipment{Carrier: "UPS", TrackingNumber: "T-1"}
	want := must.Get(h.Ship(seller(t), sale.GoodsID, paid, shipment, today))(t)
	kept := []order.Order{h.order(sale.GoodsID, open), h.order(sale.GoodsID, other)}
	require.NotEmpty(t, want.Name+want.Phone)

	require.NoError(t, h.db.Exec(strings.ReplaceAll(statement, "'USER'", "'1'")).Error)
	want.Name, want.Phone, want.Address, want.TrackingNumber = "", "", "", ""
	require.Equal(t, want, h.order(sale.GoodsID, paid))
	require.Equal(t, kept,
		[]order.Order{h.order(sale.GoodsID, open), h.order(sale.GoodsID, other)})
	h.requireBalanced(sale.GoodsID)
}
