package sqlstore

import (
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/seckill"
)

// split puts up a sale in so many buckets.
func (h house) split(merchant, units int64, buckets int) seckill.Sale {
	h.t.Helper()
	sale := seckill.NewSale{
		Title: "hot", Price: 7, Stock: units, PerBuyerLimit: 2, Buckets: buckets,
		StartAt: today, EndAt: today.Add(time.Hour), Rate: seckill.DefaultRate(),
	}.Draft(merchant, today)
	_, err := h.CreateSale(h.t.Context(), sale, noKey)
	require.NoError(h.t, err)
	return sale
}

// open puts one up and exposes it; it gives the sale and its buckets.
func (h house) open(units int64, buckets int) (seckill.Sale, []seckill.Sale) {
	h.t.Helper()
	sale := h.split(1, units, buckets)
	snap, err := h.BeginEpoch(h.t.Context(), sale.GoodsID, seckill.FirstToken, today)
	require.NoError(h.t, err)
	rows := h.buckets(sale.GoodsID)
	require.Equal(h.t, rows, append([]seckill.Sale{snap.Sale}, snap.Rest...))
	require.Equal(h.t, units-snap.Stock, snap.Others)
	return h.sale(sale.GoodsID), rows
}

func (h house) buckets(goodsID int64) []seckill.Sale {
	h.t.Helper()
	rows, err := h.Buckets(h.t.Context(), goodsID)
	require.NoError(h.t, err)
	return rows
}

// sums adds up what every bucket has, each of which must be right by itself.
func (h house) sums(goodsID int64) (total, stock int64) {
	h.t.Helper()
	for _, b := range h.buckets(goodsID) {
		db, err := h.Database(h.t.Context(), b.GoodsID)
		require.NoError(h.t, err)
		require.Equal(h.t, b.Total, db.Stock+db.Active)
		require.Equal(h.t, b.Stock, db.Stock)
		total, stock = total+b.Total, stock+b.Stock
	}
	whole := h.sale(goodsID)
	require.EqualValues(h.t, []int64{total, stock}, []int64{whole.Total, whole.Stock})
	return total, stock
}

func TestASplitDraftIsOneRowUntilItIsExposed(t *testing.T) {
	onEach(t, func(t *testing.T, h house) {
		sale := h.split(5, 10, 4)
		require.Len(t, h.buckets(sale.GoodsID), 1)
		require.EqualValues(t, 10, h.sale(sale.GoodsID).Total)
		h.changed(sale.GoodsID, seckill.Change{StockDelta: 1})
		snap, err := h.BeginEpoch(t.Context(), sale.GoodsID, seckill.FirstToken, today)
		require.NoError(t, err)
		require.Len(t, snap.Rest, 3)
		var shares []int64
		for _, b := range h.buckets(sale.GoodsID) {
			shares = append(shares, b.Total)
			require.EqualValues(t, []int64{1, 5, 7, 2}, []int64{b.Epoch, b.MerchantID, b.Price, b.PerBuyerLimit})
			require.Equal(t, seckill.Exposed, b.Status)
		}
		require.Equal(t, []int64{3, 3, 3, 2}, shares)
		_, err = h.BeginEpoch(t.Context(), sale.GoodsID, seckill.FirstToken, today)
		require.ErrorIs(t, err, seckill.ErrFenced)
		log, err := h.AuditOf(t.Context(), sale.GoodsID, "", 10)
		require.NoError(t, err)
		require.Len(t, log, 3)
	})
}

func TestListsShowSplitSalesWhole(t *testing.T) {
	onEach(t, func(t *testing.T, h house) {
		plain := h.exposed(5, 1)
		sale, rows := h.open(64, 8)
		for _, b := range rows[1:] {
			_, err := h.Sale(t.Context(), b.GoodsID)
			require.ErrorIs(t, err, seckill.ErrNoSuchGoods, "a bucket is no sale")
			_, err = h.Buckets(t.Context(), b.GoodsID)
			require.ErrorIs(t, err, seckill.ErrNoSuchGoods)
			_, err = h.CloseSale(t.Context(), b.GoodsID, today)
			require.ErrorIs(t, err, seckill.ErrNoSuchGoods)
		}
		for _, list := range []func() ([]seckill.Sale, error){
			func() ([]seckill.Sale, error) { return h.SalesOf(t.Context(), 1, 0, 100) },
			func() ([]seckill.Sale, error) { return h.ExposedSales(t.Context(), 0, 100) },
		} {
			shown, err := list()
			require.NoError(t, err)
			require.Equal(t, []seckill.Sale{sale, h.sale(plain.GoodsID)}, shown)
		}
		live, err := h.LiveGoods(t.Context(), today)
		require.NoError(t, err)
		require.Len(t, live, 9, "the background work looks after each bucket")
	})
}

func TestOrdersOfAllBucketsAreListedByTheirTime(t *testing.T) {
	onEach(t, func(t *testing.T, h house) {
		sale, rows := h.open(100, 4)
		var want []string
		for i := range 40 {
			b := rows[i*i%4]
			l := h.line(b, int64(i+1), 1)
			h.write(b.GoodsID, l)
			want = append(want, l.OrderSn)
		}
		slices.Sort(want)
		slices.Reverse(want)
		var got []string
		for before := ""; ; {
			page, err := h.OrdersOfGoods(t.Context(), sale.GoodsID, "", before, 7)
			require.NoError(t, err)
			if len(page) == 0 {
				break
			}
			for _, o := range page {
				got = append(got, o.OrderSn)
			}
			before = got[len(got)-1]
		}
		require.Equal(t, want, got)
		counts, err := h.CountOrders(t.Context(), sale.GoodsID)
		require.NoError(t, err)
		require.Equal(t, order.Count{Orders: 40, Units: 40, Amount: 280}, counts[order.Created])
	})
}

// begun writes down that units are to go from one bucket to another.
func (h house) begun(from seckill.Sale, to, units int64) order.Cut {
	h.t.Helper()
	c := order.Cut{
		ID: uuid.Must(uuid.NewV7()).String(), GoodsID: from.GoodsID, Epoch: from.Epoch, Quantity: units, To: to,
		State: order.CutOpen, BegunAt: today,
	}
	require.NoError(h.t, h.BeginTransfer(h.t.Context(), c))
	return c
}

func TestATransferMovesTotalAndStockOnce(t *testing.T) {
	onEach(t, func(t *testing.T, h house) {
		sale, rows := h.open(20, 2)
		c := h.begun(rows[1], rows[0].GoodsID, 6)
		open, err := h.OpenCuts(t.Context(), today.Add(time.Minute), 10)
		require.NoError(t, err)
		require.Equal(t, []order.Cut{c}, open, "whoever looks next knows all of it")
		var gives []order.Move
		var g errgroup.Group
		ended := make([]order.Cut, 4) // the mover, and others who found it
		for i := range ended {
			g.Go(func() (err error) {
				for range 10 {
					if ended[i], _, err = h.EndCut(t.Context(), c, order.GivenNow, today); err == nil {
						return nil
					}
				}
				return err
			})
		}
		require.NoError(t, g.Wait())
		for _, e := range ended {
			require.Equal(t, order.CutDone, e.State)
			if e.Gives != nil {
				gives = append(gives, *e.Gives)
			}
		}
		require.Len(t, gives, 1, "one of them did it")
		require.Equal(t, gives, h.moves(rows[0].GoodsID))
		require.Equal(t, order.Move{ID: c.ID, GoodsID: rows[0].GoodsID, Epoch: 1, Kind: order.MoveDelta, Quantity: 6, MadeAt: today}, gives[0])
		after := h.buckets(sale.GoodsID)
		require.EqualValues(t, []int64{16, 16, 4, 4}, []int64{after[0].Total, after[0].Stock, after[1].Total, after[1].Stock})
		h.sums(sale.GoodsID)
	})
}

func TestATransferThatRedisRefusedOrForgotIsUndone(t *testing.T) {
	onEach(t, func(t *testing.T, h house) {
		sale, rows := h.open(20, 2)
		end := func(c order.Cut, said order.Given) order.Cut {
			ended, _, err := h.EndCut(t.Context(), c, said, today)
			require.NoError(t, err)
			require.Nil(t, ended.Gives)
			return ended
		}
		require.Equal(t, order.CutUndone, end(h.begun(rows[0], rows[1].GoodsID, 6), order.CutTooLarge).State)
		old := h.begun(rows[0], rows[1].GoodsID, 6)
		h.rebuilt(rows[0].GoodsID) // it reads the units back, for the transfer has not ended
		require.Equal(t, order.CutUndone, end(old, order.GivenNow).State)
		rows = h.buckets(sale.GoodsID)
		require.EqualValues(t, []int64{2, 1}, []int64{rows[0].Epoch, rows[1].Epoch}, "the other bucket was not touched")
		late := h.begun(rows[1], rows[0].GoodsID, 3)
		_, err := h.CloseSale(t.Context(), sale.GoodsID, today)
		require.NoError(t, err)
		require.Equal(t, order.CutUndone, end(late, order.GivenNow).State)
		back := h.moves(rows[1].GoodsID)
		require.Len(t, back, 1, "what Redis gave up goes back")
		require.EqualValues(t, 3, back[0].Quantity)
		total, stock := h.sums(sale.GoodsID)
		require.EqualValues(t, []int64{20, 20}, []int64{total, stock})
	})
}

// Transfers in circles, orders and cancels at once: not a unit is lost, and no transaction waits for ever.
func TestTransfersAndOrdersMeet(t *testing.T) {
	onEach(t, func(t *testing.T, h house) {
		sale, rows := h.open(400, 4)
		var g errgroup.Group
		for i := range rows {
			g.Go(func() error { // each bucket gives to the next one
				for range 8 {
					c := h.begun(rows[i], rows[(i+1)%4].GoodsID, 3)
					for {
						_, _, err := h.EndCut(t.Context(), c, order.GivenNow, today)
						if err == nil {
							break
						}
						require.ErrorIs(t, err, order.ErrTryAgain)
					}
				}
				return nil
			})
			g.Go(func() error {
				for n := range 8 {
					b := batchOf(rows[i].GoodsID, h.line(rows[i], int64(100*i+n+1), 1))
					for {
						_, err := h.WriteBatch(t.Context(), b)
						if err == nil {
							break
						}
						require.ErrorIs(t, err, order.ErrTryAgain)
					}
				}
				return nil
			})
		}
		require.NoError(t, g.Wait())
		total, stock := h.sums(sale.GoodsID)
		require.EqualValues(t, []int64{400, 368}, []int64{total, stock})
	})
}

func TestAChangeReachesEveryBucket(t *testing.T) {
	onEach(t, func(t *testing.T, h house) {
		sale, rows := h.open(20, 4)
		b := h.changed(sale.GoodsID, seckill.Change{StockDelta: 6, PerBuyerLimit: new(int64(3)), EndAt: new(today.Add(2 * time.Hour))})
		require.EqualValues(t, []int64{26, 26, 3}, []int64{b.Sale.Total, b.Sale.Stock, b.Sale.PerBuyerLimit})
		require.Len(t, b.Moves, 4)
		for i, r := range h.buckets(sale.GoodsID) {
			require.EqualValues(t, 3, r.PerBuyerLimit)
			require.Equal(t, today.Add(2*time.Hour), r.EndAt)
			require.Equal(t, rows[i].Total+b.Moves[i].Quantity, r.Total)
		}
		cut := h.changed(sale.GoodsID, seckill.Change{StockDelta: -5, PerBuyerLimit: new(int64(1))}).Cut
		require.Equal(t, sale.GoodsID, cut.GoodsID)
		_, after, err := h.EndCut(t.Context(), *cut, order.GivenNow, today)
		require.NoError(t, err)
		require.EqualValues(t, []int64{21, 1}, []int64{after.Total, after.PerBuyerLimit})
		total, _ := h.sums(sale.GoodsID)
		require.EqualValues(t, 21, total)
		for _, r := range h.buckets(sale.GoodsID) {
			require.EqualValues(t, 1, r.PerBuyerLimit)
		}
		closed, err := h.CloseSale(t.Context(), sale.GoodsID, today)
		require.NoError(t, err)
		require.EqualValues(t, 21, closed.Total)
		for _, r := range h.buckets(sale.GoodsID) {
			require.Equal(t, seckill.Closed, r.Status)
		}
	})
}
