package sqlstore

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/salechange"
	"flashsale.dev/seckill/internal/testing/must"
)

func TestRetire_WaitsUntilEverythingIsFinal(t *testing.T) {
	onEach(t, func(t *testing.T, h fixture) {
		ctx, sale := t.Context(), h.exposed(10, 5)
		later := today.Add(48 * time.Hour)
		retire := func(epoch int64, overBefore time.Time) bool {
			done := must.Get(h.Retire(ctx, sale.GoodsID, epoch, overBefore, later))(t)
			return done
		}
		paid, unpaid := h.writeOrder(sale, 1), h.writeOrder(sale, 2)
		must.Get(h.Pay(ctx, sale.GoodsID, paid, today))(t)
		require.False(t, retire(1, later), "an order is unpaid")
		_, move, err := h.CancelOne(ctx, sale.GoodsID, unpaid, today)
		require.NoError(t, err)
		require.False(t, retire(1, later), "its units are not released")
		require.NoError(t, h.MarkReleased(ctx, sale.GoodsID, []string{move.ID}, today))
		require.False(t, retire(1, today), "it is on")
		require.False(t, retire(2, later), "another epoch")
		require.Len(t, must.Get(h.OverBefore(ctx, later, 0, 10))(t), 1)
		require.True(t, retire(1, later))

		for _, list := range []func() ([]seckill.Sale, error){
			func() ([]seckill.Sale, error) { return h.OverBefore(ctx, later, 0, 10) },
			func() ([]seckill.Sale, error) { return h.LiveGoods(ctx, time.Unix(0, 0)) },
			func() ([]seckill.Sale, error) { return h.RetiredBetween(ctx, today, later) },
		} {
			require.Empty(t, must.Get(list())(t))
		}
		require.Len(t, must.Get(h.RetiredBetween(ctx, later, later.Add(time.Second)))(t), 1)
	})
}

func TestRetire_AnyChangeUndoesIt(t *testing.T) {
	onEach(t, func(t *testing.T, h fixture) {
		ctx, later := t.Context(), today.Add(48*time.Hour)
		for name, change := range map[string]func(seckill.Sale) error{
			"a late order": func(s seckill.Sale) error { h.writeOrder(s, 1); return nil },
			"a failed one": func(s seckill.Sale) error {
				_, err := h.WriteFailed(ctx, s.GoodsID, h.line(s, 1, 1), 1, order.FailedUnwritten,
					order.DeadLetter{}, later)
				return err
			},
			"a requeue": func(s seckill.Sale) error {
				_, err := h.ScheduleRelease(ctx, s.GoodsID, h.line(s, 1, 1), later)
				return err
			},
			"a new end": func(s seckill.Sale) error {
				end := later.Add(time.Hour)
				_, err := h.Change(ctx, s.GoodsID, salechange.Change{EndAt: &end},
					salechange.IdempotencyKey{}, later)
				return err
			},
			"a rebuild": func(s seckill.Sale) error { h.beginEpoch(s.GoodsID); return nil },
		} {
			sale := h.exposed(10, 5)
			require.True(t, must.Get(h.Retire(ctx, sale.GoodsID, 1, later, later))(t))
			require.NoError(t, change(sale), name)
			require.False(t, must.Get(h.Sale(ctx, sale.GoodsID))(t).Retired, name)
		}
	})
}
