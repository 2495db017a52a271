package redisstore

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/seckill/reservation"
	"flashsale.dev/seckill/internal/testing/must"
	"flashsale.dev/seckill/internal/testing/property"
)

// saleModel is what the scripts must do with order numbers, in Go.
type saleModel struct {
	epoch, limit, avail, pend, sold int64
	orders                          map[string]*modelOrder
	moves                           int
}

type modelOrder struct {
	buyer   string
	units   int64
	pending bool
}

func (m *saleModel) held(buyer string) (units int64, sns []string) {
	for _, sn := range slices.Sorted(maps.Keys(m.orders)) {
		if o := m.orders[sn]; o.buyer == buyer && o.units > 0 {
			units, sns = units+o.units, append(sns, sn)
		}
	}
	return units, sns
}

func (m *saleModel) pendingSns() (sns []string) {
	for sn, o := range m.orders {
		if o.pending {
			sns = append(sns, sn)
		}
	}
	return sns
}

func (m *saleModel) take(r reservation.OrderLine) {
	m.orders[r.OrderSn] = &modelOrder{r.BuyerID, r.Quantity, true}
	m.avail, m.pend = m.avail-r.Quantity, m.pend+r.Quantity
}

func (m *saleModel) reserve(r reservation.Reservation, expired bool) reservation.Verdict {
	held, sns := m.held(r.BuyerID)
	switch {
	case m.orders[r.OrderSn] != nil:
		return reservation.Verdict{Code: reservation.Repeated, OrderSn: r.OrderSn}
	case expired:
		return reservation.Verdict{Code: reservation.WrongPath}
	case held+r.Quantity > m.limit:
		return reservation.Verdict{Code: reservation.OverLimit, OrderSns: sns}
	case r.Quantity > m.avail:
		return reservation.Verdict{Code: reservation.TooFew, Available: m.avail}
	}
	m.take(r.OrderLine)
	return reservation.Verdict{Code: reservation.Taken, OrderSn: r.OrderSn}
}

func (m *saleModel) adopt(l reservation.OrderLine, requeued bool) int64 {
	if o := m.orders[l.OrderSn]; o != nil && (o.units > 0 || !requeued) {
		return o.units
	}
	if held, _ := m.held(l.BuyerID); held+l.Quantity > m.limit || l.Quantity > m.avail {
		m.orders[l.OrderSn] = &modelOrder{buyer: l.BuyerID}
		return 0
	}
	m.take(l)
	return l.Quantity
}

func (m *saleModel) release(l reservation.OrderLine, kind order.MoveKind) {
	o := m.orders[l.OrderSn]
	switch {
	case o == nil:
		m.orders[l.OrderSn] = &modelOrder{buyer: l.BuyerID}
	case o.pending:
		m.avail, m.pend = m.avail+o.units, m.pend-o.units
		*o = modelOrder{buyer: o.buyer}
	case kind == order.MoveCancel && o.units > 0:
		m.avail, m.sold = m.avail+o.units, m.sold-o.units
		*o = modelOrder{buyer: o.buyer}
	}
}

// TestScripts_AgreeWithModelOnOrderNumbers holds reserve, adopt, settle, release and load against
// Go, on Redis and on the server that standalone embeds.
func TestScripts_AgreeWithModelOnOrderNumbers(t *testing.T) {
	for _, s := range []fixture{
		open(t, env.Redis(t).Addr(), ""), open(t, miniredis.RunT(t).Addr(), "a token"),
	} {
		property.Check(t, func(rt *rapid.T) { agree(t, rt, s) })
	}
}

func agree(t *testing.T, rt *rapid.T, s fixture) {
	require.NoError(rt, s.client.FlushAll(t.Context()).Err())
	m := &saleModel{epoch: 1, limit: 4, avail: 9, orders: map[string]*modelOrder{}}
	s.load(onSale(m.avail, m.limit))
	line := func(rt *rapid.T) reservation.Reservation {
		n := rapid.IntRange(0, 11).Draw(rt, "number")
		r := reservationOf(n, int64(n%3+1),
			rapid.SampledFrom([]int64{1, 1, 1, 2, 3}).Draw(rt, "quantity"))
		r.Epoch = m.epoch
		return r
	}
	rt.Repeat(map[string]func(*rapid.T){
		"reserve": func(rt *rapid.T) {
			var group []reservation.Reservation
			var want []reservation.Verdict
			for range rapid.IntRange(1, 4).Draw(rt, "group") {
				r, expired := line(rt), rapid.IntRange(0, 4).Draw(rt, "expired") == 0
				if expired {
					r.PathEnd = time.Now().Add(-time.Second)
				}
				group, want = append(group, r), append(want, m.reserve(r, expired))
			}
			got := must.Get(s.Reserve(t.Context(), goods, m.epoch, group))(rt)
			for i := range got.Verdicts {
				slices.Sort(got.Verdicts[i].OrderSns)
			}
			require.Equal(rt, want, got.Verdicts)
		},
		"adopt": func(rt *rapid.T) {
			l := line(rt).OrderLine
			units := must.Get(s.Adopt(
				t.Context(), goods, m.epoch, m.limit, []reservation.OrderLine{l},
			))(rt)
			require.Equal(rt, map[string]int64{l.OrderSn: m.adopt(l, false)}, units)
		},
		"requeue": func(rt *rapid.T) {
			l := line(rt).OrderLine
			units := must.Get(s.Retake(t.Context(), goods, m.epoch, m.limit, l))(rt)
			require.Equal(rt, m.adopt(l, true), units)
		},
		"settle": func(rt *rapid.T) {
			l := line(rt)
			if o := m.orders[l.OrderSn]; o != nil && o.pending {
				o.pending, m.pend, m.sold = false, m.pend-o.units, m.sold+o.units
			}
			must.Get(s.Settle(t.Context(), goods, []string{l.OrderSn, l.OrderSn}))(rt)
		},
		"release": func(rt *rapid.T) {
			l := line(rt).OrderLine
			kinds := []order.MoveKind{order.MoveCancel, order.MoveFail}
			kind, o := rapid.SampledFrom(kinds).Draw(rt, "kind"), m.orders[l.OrderSn]
			if kind == order.MoveCancel {
				if o == nil || o.units == 0 {
					return // MySQL cancels an order once
				}
				l.Quantity = o.units
			}
			m.moves++
			m.release(l, kind)
			move := order.StockMove{
				ID: fmt.Sprint("move", m.moves), GoodsID: goods, Epoch: m.epoch, Kind: kind,
				BuyerID: l.BuyerID, OrderSn: l.OrderSn, Quantity: l.Quantity,
			}
			for _, want := range []order.MoveResult{order.MoveApplied, order.MoveAppliedBefore} {
				require.Equal(rt, []order.MoveResult{want}, s.release(move))
			}
		},
		"rebuild": func(rt *rapid.T) {
			m.epoch++
			sale := onSaleIn(m.epoch, 9, m.limit)
			sale.Stock, m.pend, m.sold = m.avail, 0, m.pend+m.sold
			s.load(sale, m.heldOrders()...)
		},
		"": func(rt *rapid.T) {
			v := s.view()
			require.Equal(
				rt, []int64{m.avail, m.pend, m.sold}, []int64{v.Available, v.Pending, v.Sold},
			)
			pending := s.pendingSns()
			require.ElementsMatch(rt, m.pendingSns(), pending)
			if len(pending) == 0 {
				require.Zero(rt, s.blocks())
			}
		},
	})
}

// heldOrders returns the orders after everything pending was written.
func (m *saleModel) heldOrders() (list []order.Held) {
	for _, sn := range slices.Sorted(maps.Keys(m.orders)) {
		o := m.orders[sn]
		o.pending = false
		list = append(list, order.Held{BuyerID: o.buyer, OrderSn: sn, Quantity: o.units})
	}
	return list
}
