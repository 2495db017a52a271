package sqlstore

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"gorm.io/gorm"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/message"
	"flashsale.dev/seckill/internal/order/retention"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/salechange"
	"flashsale.dev/seckill/internal/testing/must"
)

// count counts the rows of a table.
func (h fixture) count(table string) (n int64) {
	h.t.Helper()
	require.NoError(h.t, h.db.Table(table).Count(&n).Error)
	return n
}

// TestForget_DeletesFinishedWorkInBatches checks that old finished rows are deleted, at most limit
// in a call, and that younger or unfinished ones stay.
func (h fixture) TestForget_DeletesFinishedWorkInBatches(t *testing.T) {
	ctx, sale := t.Context(), h.exposed(20, 5)
	var released []string
	for i := range int64(5) {
		move := must.Get(h.CancelOne(sale.GoodsID, h.writeOrder(sale, i+1), today))(t).Move
		released = append(released, move.ID)
	}
	require.NoError(t, h.MarkReleased(ctx, sale.GoodsID, released[:4], today))
	for token := range int64(4) {
		bar := message.Barrier{Epoch: 1, Token: token}
		require.NoError(t, h.RecordBarrier(ctx, sale.GoodsID, bar, today))
	}
	for i := range 5 {
		key := salechange.IdempotencyKey{ActorID: "auth0|A", Key: fmt.Sprint(i), Hash: "h"}
		cut := must.Get(h.Change(ctx, sale.GoodsID, salechange.Change{StockDelta: -1}, key,
			today))(t).Cut
		if i < 4 {
			_, _, err := h.EndCut(ctx, *cut, order.MoveApplied, today)
			require.NoError(t, err)
		}
	}
	for i := range 5 {
		k := h.addAPIKey("70", fmt.Sprint(i), today)
		if i < 4 {
			require.NoError(t, h.RevokeAPIKey(ctx, k.ID, "70", today))
		}
	}
	for table, c := range map[string]struct {
		kind       retention.Kind
		unfinished int64
	}{
		"stock_moves":      {retention.Moves, 1},
		"barriers":         {retention.Barriers, 0},
		"stock_cuts":       {retention.Cuts, 1},
		"idempotency_keys": {retention.Keys, 0},
		"api_keys":         {retention.APIKeys, 1},
	} {
		before := h.count(table)
		require.Zero(t, must.Get(h.Forget(ctx, c.kind, today, 3))(t), "%s: not old yet", table)
		require.Equal(t, before, h.count(table), table)
		later := today.Add(time.Millisecond)
		require.Equal(t, 3, must.Get(h.Forget(ctx, c.kind, later, 3))(t), table)
		require.Equal(t, before-3, h.count(table), table)
		must.Get(h.Forget(ctx, c.kind, later, 100))(t)
		require.Equal(t, c.unfinished, h.count(table), table)
	}
	h.requireUnreleased(sale.GoodsID, 2, today)
}

// TestForgetTombstones_OfRetiredSales checks that only tombstones without a message are deleted,
// and only of a sale that was retired long ago. Their number gets the same answer again.
func (h fixture) TestForgetTombstones_OfRetiredSales(t *testing.T) {
	ctx, sale, live := t.Context(), h.exposed(20, 5), h.exposed(20, 5)
	lost := func(of seckill.Sale) order.Order {
		o := tombstone(of.GoodsID, of.Epoch, h.line(of, 1, 1), today)
		return must.Get(h.WriteTombstone(ctx, o))(t)
	}
	empty, living := lost(sale), lost(live)
	filled := h.line(sale, 2, 1)
	h.writeFailed(sale.GoodsID, filled, order.FailedLost)
	require.NoError(t, h.db.Exec("UPDATE sales SET retired_at = ? WHERE goods_id = ?",
		today.UnixMilli(), sale.GoodsID).Error)

	forget := func(before time.Time, above int64) (int, int64) {
		found, last, err := h.ForgetTombstones(ctx, before, above, 10)
		require.NoError(t, err)
		return found, last
	}
	found, last := forget(today, 0)
	require.Zero(t, found+int(last))
	found, last = forget(today.Add(1e6), 0)
	require.Equal(t, 1, found)
	require.Equal(t, sale.GoodsID, last)
	found, last = forget(today.Add(1e6), last)
	require.Zero(t, found+int(last), "after the last sale")
	_, err := h.find(sale.GoodsID, empty.OrderSn)
	require.ErrorIs(t, err, order.ErrNoSuchOrder)
	h.order(sale.GoodsID, filled.OrderSn)
	h.order(live.GoodsID, living.OrderSn)
	again := must.Get(h.WriteTombstone(ctx, empty))(t)
	require.Equal(t, order.FailedLost, again.FailureReason)
}

// rowsRead returns how many rows the server examines for calls of a store.
func (h fixture) rowsRead(calls func(*Store)) (read int64) {
	h.t.Helper()
	require.NoError(h.t, h.db.Connection(func(conn *gorm.DB) error {
		examined := func() (n int64) {
			var counters []struct {
				VariableName string `gorm:"column:Variable_name"`
				Value        int64
			}
			require.NoError(h.t,
				conn.Raw("SHOW SESSION STATUS LIKE 'Handler_read%'").Scan(&counters).Error)
			require.NotEmpty(h.t, counters)
			for _, c := range counters {
				n += c.Value
			}
			return n
		}
		before := examined()
		calls(&Store{db: conn.Session(&gorm.Session{})})
		read = examined() - before
		return nil
	}))
	return read
}

// TestWorkerLists_ReadWhatTheyReturn has 16,384 retired sales, as many stock moves of one sale,
// and ten live sales. By the server's counters the lists of the workers examine few of these rows.
func TestWorkerLists_ReadWhatTheyReturn(t *testing.T) {
	const doublings, live = 14, 10
	onEachMigrated(t, sqlServers, func(t *testing.T, h fixture) {
		ctx, goods := t.Context(), h.exposed(5, 1).GoodsID
		do := func(statement string, args ...any) {
			_, err := h.schema.ExecContext(ctx, statement, args...) // without a deadline
			require.NoError(t, err)
		}
		do("UPDATE sales SET goods_id = 1, retired_at = ?", today.UnixMilli())
		do(`INSERT INTO stock_moves (goods_id, id, epoch, buyer_id, order_sn, quantity, kind,
			made_at) VALUES (?, '1', 1, 1, 'x', 1, 'cancel', 1)`, goods)
		for i := range doublings {
			columns := "merchant_id, title, price, total, stock, version, epoch, rebuild_token, " +
				"per_buyer_limit, max_per_buyer_limit, start_at, end_at, rate_algorithm, " +
				"permits_per_second, max_burst_seconds, max_wait_millis, status, created_at, " +
				"updated_at, retired_at"
			do("INSERT INTO sales (goods_id, "+columns+") SELECT goods_id + ?, "+columns+
				" FROM sales", 1<<i)
			do(`INSERT INTO stock_moves (goods_id, id, epoch, buyer_id, order_sn, quantity, kind,
				made_at) SELECT goods_id, CAST(id AS UNSIGNED) + ?, epoch, buyer_id, order_sn,
				quantity, kind, made_at FROM stock_moves`, 1<<i)
		}
		for range live {
			h.exposed(5, 1)
		}
		do("ANALYZE TABLE sales, stock_moves")
		later := today.Add(48 * time.Hour)
		for name, call := range map[string]func(*Store) int{
			"live sales": func(s *Store) int {
				return len(must.Get(s.LiveGoods(ctx, nil))(t))
			},
			"sales to retire": func(s *Store) int {
				return len(must.Get(s.OverBefore(ctx, later, 0, 100))(t))
			},
			"sales to remove": func(s *Store) int {
				return live + len(must.Get(s.RetiredBetween(ctx, later, later, 0, 100))(t))
			},
			"goods with moves": func(s *Store) int {
				next := must.Get(s.UnreleasedAfter(ctx, 0, later))(t)
				require.Equal(t, goods, next)
				require.Zero(t, must.Get(s.UnreleasedAfter(ctx, next, later))(t))
				return live
			},
			"moves": func(s *Store) int {
				return len(must.Get(s.UnreleasedMoves(ctx, goods, later, live))(t))
			},
		} {
			var found int
			read := h.rowsRead(func(s *Store) { found = call(s) })
			require.Equal(t, live, found, name)
			require.Less(t, read, int64(200), "%s: rows examined for %d", name, found)
		}
	})
}
