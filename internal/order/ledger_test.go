package order_test

import (
	"context"
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/inventory"
	"flashsale.dev/seckill/internal/order/reconcile"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/salechange"
	"flashsale.dev/seckill/internal/testing/must"
	"flashsale.dev/seckill/internal/ttlcache"
)

// interleaved has the servers that a ledger reads. The steps of a change run before some calls.
type interleaved struct {
	reconcile.Store
	reconcile.Redis
	steps []func()
	at    []int // the call of each step, in ascending order
	calls int
}

func (s *interleaved) call() {
	for len(s.at) > 0 && s.at[0] == s.calls {
		s.steps[0]()
		s.steps, s.at = s.steps[1:], s.at[1:]
	}
	s.calls++
}

func (s *interleaved) View(ctx context.Context, goodsID int64) (seckill.View, error) {
	s.call()
	return s.Redis.View(ctx, goodsID)
}

func (s *interleaved) PendingPages(
	ctx context.Context, goodsID, count int64,
) iter.Seq2[[]order.Pending, error] {
	s.call()
	return s.Redis.PendingPages(ctx, goodsID, count)
}

func (s *interleaved) Database(ctx context.Context, goodsID int64) (seckill.Database, error) {
	s.call()
	return s.Store.Database(ctx, goodsID)
}

func (s *interleaved) Unreleased(ctx context.Context, goodsID int64) (int, time.Time, error) {
	s.call()
	return s.Store.Unreleased(ctx, goodsID)
}

// TestLedger_IsBalancedDuringEveryChange checks that the ledger of a sale is balanced, between
// whichever of its readings the steps of a change come.
func TestLedger_IsBalancedDuringEveryChange(t *testing.T) {
	const calls = 8 // more than a ledger makes
	h := newFixture(t)
	h.queue.down.Store(true) // the outbox holds the orders
	sale, last := h.exposeSale(1000, 1), int64(0)
	goods, ctx := sale.GoodsID, t.Context()
	var sn string
	var moves []order.StockMove
	var cut inventory.StockCut
	reserve := func() { last++; sn = h.buy(goods, last, 1) }
	write := func() { h.commit(goods, h.pending(goods, sn)...) }
	settle := func() { must.Get(h.redis.Settle(ctx, goods, []string{sn}))(t) }
	release := func() { h.releaser().Release(ctx, moves) }
	change := func(units int64) inventory.BegunChange {
		return must.Get(h.store.Change(ctx, goods, salechange.Change{StockDelta: units},
			salechange.IdempotencyKey{}, time.Now()))(t)
	}
	for name, steps := range map[string][]func(){
		"purchase": {reserve, write, settle},
		"cancellation": {
			func() { reserve(); write(); settle() },
			func() {
				done := must.Get(h.store.Cancel(ctx, goods, []string{sn}, time.Now()))(t)
				moves = []order.StockMove{*done[0].Move}
			},
			release,
		},
		"raise": {func() { moves = change(1).Moves }, release},
		"cut": {
			func() { cut = *change(-1).Cut },
			func() { must.Get(h.redis.Release(ctx, goods, []order.StockMove{cut.Move()}))(t) },
			func() {
				_, _, err := h.store.EndCut(ctx, cut, order.MoveApplied, time.Now())
				require.NoError(t, err)
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			for at := range ascending(len(steps), calls) {
				s := &interleaved{Store: h.store, Redis: h.redis, steps: steps, at: at}
				l := must.Get(reconcile.LedgerReader{Store: s, Redis: s}.Ledger(ctx, sale))(t)
				require.True(t, l.Balanced, "steps before calls %v: %+v", at, l)
				for _, step := range s.steps {
					step()
				}
			}
		})
	}
}

// ascending iterates over all lists of n numbers from 0 to most in ascending order.
func ascending(n, most int) iter.Seq[[]int] {
	return func(yield func([]int) bool) {
		list := make([]int, n)
		for {
			if !yield(slices.Clone(list)) {
				return
			}
			i := n - 1
			for i >= 0 && list[i] == most {
				i--
			}
			if i < 0 {
				return
			}
			next := list[i] + 1
			for ; i < n; i++ {
				list[i] = next
			}
		}
	}
}

// TestLedger_OldSumsRaiseNoAlarm checks that a ledger whose figures of MySQL are from before a
// purchase is balanced, and that one with a true difference is not.
func TestLedger_OldSumsRaiseNoAlarm(t *testing.T) {
	h := newFixture(t)
	sale := h.exposeSale(5, 1)
	reader := func() reconcile.LedgerReader {
		sums := ttlcache.New[int64, seckill.Database](ttlcache.Options{
			TTL: time.Hour, MaxEntries: 1, LoadTimeout: time.Minute, Now: time.Now,
		})
		return reconcile.LedgerReader{Store: h.store, Redis: h.redis, Sums: sums}
	}
	old := reader()
	before := must.Get(old.Ledger(t.Context(), sale))(t)
	h.queue.down.Store(true) // the outbox holds the order
	sn := h.buy(sale.GoodsID, 7, 1)
	h.commit(sale.GoodsID, h.pending(sale.GoodsID, sn)...)
	must.Get(h.redis.Settle(t.Context(), sale.GoodsID, []string{sn}))(t)
	after := must.Get(old.Ledger(t.Context(), sale))(t)
	require.EqualValues(t, 1, after.Sold)
	require.Equal(t, before.Database, after.Database)
	require.True(t, after.Balanced, "%+v", after)
	h.exec(`UPDATE orders SET quantity = 2`)
	require.False(t, must.Get(reader().Ledger(t.Context(), sale))(t).Balanced)
}

// TestLedger_IsBalancedDuringABacklog checks that an order that has waited in the queue for longer
// than 5 s is no difference when it is written: it is about to be settled. It is one if it is not
// settled 5 s later. The same holds for an order that is written as failed.
func TestLedger_IsBalancedDuringABacklog(t *testing.T) {
	h := newFixture(t)
	goods := h.exposeSale(5, 1).GoodsID
	h.queue.down.Store(true)
	written := h.pending(goods, h.buy(goods, 7, 1), h.buy(goods, 8, 1))
	h.mini.SetTime(time.Now().Add(time.Minute))
	h.commit(goods, written[0])
	must.Get(h.store.WriteFailed(t.Context(), written[1],
		order.DeadLetter{GoodsID: goods, Reason: order.FailedUnwritten}, time.Now()))(t)
	require.True(t, h.ledger(goods).Balanced)
	h.exec(`UPDATE stock_moves SET given_at = made_at`)
	require.True(t, h.ledger(goods).Balanced)
	h.aged(6 * time.Second)
	require.Equal(t, 2, h.ledger(goods).Differences.Unsettled)
}

// aged makes the rows of all orders older.
func (h *fixture) aged(by time.Duration) {
	h.exec(`UPDATE orders SET created_at = created_at - ?, closed_at = closed_at - ?`,
		by.Milliseconds(), by.Milliseconds())
}
