package order_test

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/seckill"
)

// putUpSplit exposes a sale that is on, in so many buckets.
func (h *house) putUpSplit(units, limit int64, buckets int) seckill.Sale {
	h.t.Helper()
	merchant := seckill.Actor{ID: 1, Role: seckill.Merchant}
	sale, err := h.Sales.Create(h.t.Context(), merchant, seckill.NewSale{
		Title: "a kettle", Price: 250, Stock: units, PerBuyerLimit: limit, Rate: seckill.DefaultRate(), Buckets: buckets,
		StartAt: time.Now().Add(-time.Hour), EndAt: time.Now().Add(time.Hour),
	}, seckill.Once{})
	require.NoError(h.t, err)
	sale, err = h.Sales.Expose(h.t.Context(), merchant, sale.GoodsID)
	require.NoError(h.t, err)
	require.Equal(h.t, units, sale.Total)
	return sale
}

// buyersOf finds buyers of one bucket.
func buyersOf(bucket int64, n int) []int64 {
	var ids []int64
	for id := int64(1); len(ids) < n; id++ {
		if seckill.BucketOf(bucket, id) == bucket {
			ids = append(ids, id)
		}
	}
	return ids
}

// insist asks with the same path until there is an order, or a refusal that is not for now.
func (h *house) insist(goods, buyerID, quantity int64) (string, error) {
	h.t.Helper()
	until := time.Now().Add(within)
	var path string
	for {
		if path == "" {
			v, err := h.Shop.Admit(h.t.Context(), goods, buyerID)
			if err == nil {
				path, _, err = h.Shop.IssuePath(h.t.Context(), v, buyerID)
			}
			if err != nil && (seckill.ReasonOf(err) != seckill.Unavailable || time.Now().After(until)) {
				return "", err
			}
		}
		if path != "" {
			sn, err := h.Desk.Place(h.t.Context(), order.Purchase{GoodsID: goods, Buyer: buyer(buyerID), Path: path, Quantity: quantity})
			switch reason := seckill.ReasonOf(err); {
			case err == nil, reason != seckill.Unavailable && reason != seckill.BadPath, time.Now().After(until):
				return sn, err
			case reason == seckill.BadPath:
				path = "" // the bucket was built again
			}
		}
		time.Sleep(tick) // as a buyer who is told to ask again, only faster
	}
}

// got insists until there is an order.
func (h *house) got(goods, buyerID, quantity int64) string {
	h.t.Helper()
	sn, err := h.insist(goods, buyerID, quantity)
	require.NoError(h.t, err)
	return sn
}

func TestASplitSaleIsSoldAsOne(t *testing.T) {
	h := open(t)
	sale := h.putUpSplit(40, 2, 4)
	h.work(settings())
	sns := map[int64]string{}
	for id := int64(1); id <= 20; id++ {
		sns[id] = h.got(sale.GoodsID, id, 1)
	}
	for id, sn := range sns {
		h.becomes(id, sn, order.Created)
	}
	h.settles(sale.GoodsID, 20, 20)
	v, err := h.Shop.Sale(t.Context(), sale.GoodsID)
	require.NoError(t, err)
	require.EqualValues(t, []int64{40, 20, sale.GoodsID}, []int64{v.Total, v.Available, v.GoodsID})
	l := h.ledger(sale.GoodsID)
	require.EqualValues(t, []int64{40, 20, 0, 20, 1}, []int64{l.Total, l.Available, l.Pending, l.Sold, l.Epoch})
	listed, err := h.Finder.OfGoods(t.Context(), seckill.Actor{ID: 1, Role: seckill.Merchant}, sale.GoodsID, "", "", 100)
	require.NoError(t, err)
	require.Len(t, listed, 20)
	_, err = h.Cashier.Cancel(t.Context(), buyer(3), sns[3])
	require.NoError(t, err)
	h.settles(sale.GoodsID, 21, 19)
	for _, bucket := range seckill.BucketsOf(sale.GoodsID)[1:] {
		_, err := h.Shop.Sale(t.Context(), bucket)
		require.Equal(t, seckill.NotFound, seckill.ReasonOf(err), "a bucket is nobody's business")
		_, err = h.Shop.Admit(t.Context(), bucket, 1)
		require.Equal(t, seckill.NotFound, seckill.ReasonOf(err))
		_, err = h.Sales.Get(t.Context(), seckill.Actor{ID: 1, Role: seckill.Operator}, bucket)
		require.Equal(t, seckill.NotFound, seckill.ReasonOf(err))
	}
}

// carried adds up the units that an observer is told of.
type carried struct {
	order.Unobserved
	units atomic.Int64
}

func (c *carried) Carried(units int64) { c.units.Add(units) }

// Everybody is of one bucket, and buys what all buckets have, to the last unit; then it is sold out, and not before.
func TestBuyersOfOneBucketGetEverything(t *testing.T) {
	h := open(t)
	seen := &carried{}
	h.parts.Observer = seen
	sale := h.putUpSplit(37, 1, 8)
	h.work(settings())
	ids := buyersOf(seckill.BucketsOf(sale.GoodsID)[5], 38)
	for _, id := range ids[:37] {
		sn, err := h.insist(sale.GoodsID, id, 1)
		require.NoError(t, err)
		h.becomes(id, sn, order.Created)
	}
	_, err := h.insist(sale.GoodsID, ids[37], 1)
	require.Equal(t, seckill.SoldOut, seckill.ReasonOf(err))
	h.settles(sale.GoodsID, 0, 37)
	require.GreaterOrEqual(t, seen.units.Load(), int64(37-5), "a bucket of eight had five of them at the most")
}

// What one order asks for lies in many buckets.
func TestUnitsAreGatheredForOneOrder(t *testing.T) {
	h := open(t)
	sale := h.putUpSplit(8, 8, 8)
	h.work(settings())
	sn, err := h.insist(sale.GoodsID, 77, 8)
	require.NoError(t, err)
	h.becomes(77, sn, order.Created)
	_, err = h.insist(sale.GoodsID, 77, 1)
	var e *seckill.Error
	require.True(t, errors.As(err, &e))
	require.Contains(t, []seckill.Reason{seckill.SoldOut, seckill.LimitReached}, e.Reason)
	h.settles(sale.GoodsID, 0, 8)
}

// mover is one more mover, besides the crew's.
func (h *house) mover() *order.Mover {
	live := order.NewLive(h.store, time.Hour, h.parts.Log)
	live.Refresh(h.t.Context())
	return order.NewMover(live, h.store, h.shelf, order.NewGiver(h.store, h.shelf, h.parts.Log), h.parts.Log)
}

// begun writes down a transfer between the first two buckets of a sale.
func (h *house) begun(sale seckill.Sale, units int64) order.Cut {
	h.t.Helper()
	ids := seckill.BucketsOf(sale.GoodsID)
	c := order.Cut{
		ID: fmt.Sprintf("cut of %d", units), GoodsID: ids[0], Epoch: 1, Quantity: units, To: ids[1], State: order.CutOpen,
		BegunAt: time.Now().UTC().Truncate(time.Millisecond),
	}
	require.NoError(h.t, h.store.BeginTransfer(h.t.Context(), c))
	return c
}

// A mover dies after each of its steps. Somebody else finishes what it began, and no unit is lost or made.
func TestATransferLeftBehindIsFinished(t *testing.T) {
	steps := []func(h *house, c order.Cut){
		func(*house, order.Cut) {},
		func(h *house, c order.Cut) {
			given, err := h.shelf.Release(h.t.Context(), c.GoodsID, []order.Move{c.Move()})
			require.NoError(h.t, err)
			require.Equal(h.t, []order.Given{order.GivenNow}, given)
		},
		func(h *house, c order.Cut) {
			ended, _, err := h.store.EndCut(h.t.Context(), c, order.GivenNow, time.Now())
			require.NoError(h.t, err)
			require.NotNil(h.t, ended.Gives)
		},
	}
	for n := range len(steps) {
		t.Run(fmt.Sprintf("after step %d", n+1), func(t *testing.T) {
			t.Parallel()
			h := open(t)
			seen := &carried{}
			h.parts.Observer = seen
			sale := h.putUpSplit(20, 1, 2)
			c := h.begun(sale, 10)
			for _, step := range steps[:n+1] {
				step(h, c)
			}
			require.EqualValues(t, 20, h.ledger(sale.GoodsID).Total, "what is in the air is counted")
			h.work(settings())
			h.settles(sale.GoodsID, 20, 0)
			ids := buyersOf(seckill.BucketsOf(sale.GoodsID)[1], 20)
			for _, id := range ids {
				_, err := h.insist(sale.GoodsID, id, 1)
				require.NoError(t, err)
			}
			h.settles(sale.GoodsID, 0, 20)
			if n < 2 { // after the third step somebody else has ended it, and told
				require.GreaterOrEqual(t, seen.units.Load(), int64(10), "who finishes a transfer tells of it")
			}
		})
	}
}

// Two movers who do not know of each other carry at once: more than is needed, perhaps, and not a unit more than there is.
func TestRacedMoversCarryNothingTwice(t *testing.T) {
	h := open(t)
	sale := h.putUpSplit(32, 32, 4)
	ids := seckill.BucketsOf(sale.GoodsID)
	hungry := buyersOf(ids[2], 1)[0]
	path := h.path(sale.GoodsID, hungry)
	ask := func() error {
		_, err := h.Desk.Place(t.Context(), order.Purchase{GoodsID: sale.GoodsID, Buyer: buyer(hungry), Path: path, Quantity: 20})
		return err
	}
	stop := h.work(settings())
	defer stop()
	var g errgroup.Group
	for range 4 {
		m := h.mover()
		g.Go(func() error {
			for range 5 {
				h.mini.Del(fmt.Sprintf("sk:{%d}:turn", sale.GoodsID)) // nobody hears that it is another's turn
				if err := m.Look(t.Context(), sale.GoodsID, sale.Total); err != nil {
					return err
				}
			}
			return nil
		})
	}
	require.Eventually(t, func() bool { return ask() == nil }, within, tick)
	require.NoError(t, g.Wait())
	h.settles(sale.GoodsID, 12, 20)
}

func TestASplitSaleIsChangedWhole(t *testing.T) {
	h := open(t)
	sale := h.putUpSplit(20, 2, 4)
	h.work(settings())
	merchant := seckill.Actor{ID: 1, Role: seckill.Merchant}
	change := func(c seckill.Change) (seckill.Sale, error) {
		return h.Changes.Change(t.Context(), merchant, sale.GoodsID, c, seckill.Once{})
	}
	changed, err := change(seckill.Change{StockDelta: 10, PerBuyerLimit: new(int64(1))})
	require.NoError(t, err)
	require.EqualValues(t, []int64{30, 1}, []int64{changed.Total, changed.PerBuyerLimit})
	h.settles(sale.GoodsID, 30, 0)
	h.becomes(5, h.got(sale.GoodsID, 5, 1), order.Created)
	_, err = h.insist(sale.GoodsID, 5, 1)
	require.Equal(t, seckill.LimitReached, seckill.ReasonOf(err), "in every bucket")

	changed, err = change(seckill.Change{StockDelta: -25})
	require.NoError(t, err)
	require.EqualValues(t, 5, changed.Total)
	h.settles(sale.GoodsID, 4, 1)
	_, err = change(seckill.Change{StockDelta: -5})
	var e *seckill.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, seckill.Conflict, e.Reason)
	require.EqualValues(t, 4, e.Data["available"])
	h.settles(sale.GoodsID, 4, 1)

	closed, err := h.Sales.Close(t.Context(), merchant, sale.GoodsID)
	require.NoError(t, err)
	require.Equal(t, seckill.Closed, closed.Status)
	for id := range int64(20) {
		_, err := h.Shop.Admit(t.Context(), sale.GoodsID, id+1)
		require.Equal(t, seckill.Ended, seckill.ReasonOf(err), "in every bucket")
	}
	h.settles(sale.GoodsID, 4, 1)
}

// Redis loses one bucket. It is shut until it has been built again; the others sell on, and nobody hears "sold out".
func TestOneBucketIsRebuiltWhileTheOthersSell(t *testing.T) {
	h := open(t)
	sale := h.putUpSplit(40, 1, 4)
	ids := seckill.BucketsOf(sale.GoodsID)
	for _, key := range h.mini.Keys() {
		if strings.HasPrefix(key, fmt.Sprintf("sk:{%d}", ids[3])) {
			h.mini.Del(key)
		}
	}
	_, err := h.Shop.Admit(t.Context(), sale.GoodsID, buyersOf(ids[3], 1)[0])
	require.Equal(t, seckill.Unavailable, seckill.ReasonOf(err))
	h.work(settings())
	for _, bucket := range ids[:3] {
		h.got(sale.GoodsID, buyersOf(bucket, 1)[0], 1)
	}
	for _, id := range buyersOf(ids[3], 12) {
		_, err := h.insist(sale.GoodsID, id, 1)
		require.NoError(t, err)
	}
	h.settles(sale.GoodsID, 25, 15)
	l := h.ledger(sale.GoodsID)
	require.EqualValues(t, 2, l.Epoch, "the highest")
}
