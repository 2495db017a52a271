package order_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/apierror"
	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/purchase"
	"flashsale.dev/seckill/internal/ordersn"
	"flashsale.dev/seckill/internal/seckill/reservation"
	"flashsale.dev/seckill/internal/testing/must"
)

// legacyNumber makes an order number as the release before stateless paths did.
func (h *fixture) legacyNumber(goods, epoch int64) string {
	key := hmac.New(sha256.New, settings().OrderSecrets[0])
	key.Write([]byte("flashsale order number"))
	id := uuid.Must(uuid.NewV7())
	raw := binary.BigEndian.AppendUint64(id[:], uint64(goods))
	raw = binary.BigEndian.AppendUint32(raw, uint32(epoch))
	mac := hmac.New(sha256.New, key.Sum(nil))
	mac.Write(raw)
	encoding := base32.HexEncoding.WithPadding(base32.NoPadding)
	return strings.ToLower(encoding.EncodeToString(append(raw, mac.Sum(nil)[:8]...)))
}

// TestUpgrade_OrdersAndPathsOfBothReleasesWork checks a sale that the release before has begun. It
// has left an unused and a used path in Redis, and orders whose epoch is only in their number.
func TestUpgrade_OrdersAndPathsOfBothReleasesWork(t *testing.T) {
	h := newFixture(t)
	sale := h.exposeSale(9, 9)
	goods := sale.GoodsID
	old := reservation.OrderLine{OrderSn: h.legacyNumber(goods, 1), BuyerID: "7", Quantity: 2}
	unused, used := strings.Repeat("0a", 16), strings.Repeat("0b", 16)
	for path, value := range map[string]string{unused: "7@1", used: "7 " + old.OrderSn} {
		key := fmt.Sprintf("sk:{%d}:p:%s", goods, path)
		require.NoError(t, h.parts.Redis.Set(t.Context(), key, value, time.Minute).Err())
	}
	// The release before reserved this order under another path.
	before := []reservation.Reservation{{OrderLine: old, PathEnd: time.Now().Add(time.Minute)}}
	must.Get(h.redis.Reserve(t.Context(), goods, 1, before))(t)
	h.runWorkers(settings())
	h.publish(goods, h.lines(goods, old))
	require.EqualValues(t, 2, h.becomes(7, old.OrderSn, order.Created).Quantity)
	with := func(path string) purchase.Request {
		return purchase.Request{GoodsID: goods, Buyer: buyer(7), Path: path, Quantity: 1}
	}
	require.Equal(t, old.OrderSn, h.place(with(used)))
	sn := h.place(with(unused))
	require.Len(t, sn, ordersn.Len)
	require.Equal(t, sn, h.place(with(unused)))
	h.becomes(7, sn, order.Created)
	_, err := h.Purchases.Place(t.Context(), with(strings.Repeat("0c", 16)))
	require.Equal(t, apierror.BadPath, apierror.ReasonOf(err))
	list := must.Get(h.Orders.Mine(t.Context(), buyer(7), "", 10))(t)
	require.Equal(t, []string{sn, old.OrderSn}, []string{list[0].OrderSn, list[1].OrderSn})
	h.settles(goods, 6, 3)

	// After a loss of Redis the epoch of a late order of the old form is read from its number.
	late := reservation.OrderLine{OrderSn: h.legacyNumber(goods, 1), BuyerID: "8", Quantity: 1}
	h.mini.FlushAll()
	h.settles(goods, 6, 3)
	h.publish(goods, h.lines(goods, late))
	require.EqualValues(t, 1, h.becomes(8, late.OrderSn, order.Created).Epoch)
	h.settles(goods, 5, 4)
}

// TestPlace_ExpiredPathAnswersItsOrder checks that an expired path buys nothing, and returns the
// order that it bought before.
func TestPlace_ExpiredPathAnswersItsOrder(t *testing.T) {
	h := newFixture(t)
	sale := h.exposeSale(9, 9)
	h.runWorkers(settings())
	n := h.keys.Issue(sale.GoodsID, "7", time.Now().Add(-time.Hour))
	request := purchase.Request{GoodsID: sale.GoodsID, Buyer: buyer(7), Path: n.Path(), Quantity: 1}
	_, err := h.Purchases.Place(t.Context(), request)
	require.Equal(t, apierror.BadPath, apierror.ReasonOf(err))
	line := reservation.OrderLine{OrderSn: n.String(), BuyerID: "7", Quantity: 1}
	h.publish(sale.GoodsID, h.lines(sale.GoodsID, line)) // of an epoch that is over
	h.becomes(7, n.String(), order.Created)
	require.Equal(t, n.String(), h.place(request))
	h.settles(sale.GoodsID, 8, 1)
}

// TestPlace_RepeatedPathAfterRebuildTakesNothing checks that the paths of a cancelled and of a
// created order take nothing with another quantity, before and after a loss of Redis.
func TestPlace_RepeatedPathAfterRebuildTakesNothing(t *testing.T) {
	h := newFixture(t)
	sale := h.exposeSale(9, 9)
	h.runWorkers(settings())
	var requests []purchase.Request
	var sns []string
	for range 2 {
		r := h.request(sale.GoodsID, 7, 1)
		sn := h.place(r)
		h.becomes(7, sn, order.Created)
		requests, sns = append(requests, r), append(sns, sn)
	}
	must.Get(h.Payments.Cancel(t.Context(), buyer(7), sns[0]))(t)
	h.settles(sale.GoodsID, 8, 1)
	for range 2 {
		for i, r := range requests {
			r.Quantity = 3
			require.Equal(t, sns[i], h.place(r))
		}
		h.settles(sale.GoodsID, 8, 1)
		h.mini.FlushAll()
		h.settles(sale.GoodsID, 8, 1)
	}
}
