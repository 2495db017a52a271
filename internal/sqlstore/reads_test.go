package sqlstore

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/event"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/salechange"
	"flashsale.dev/seckill/internal/testing/must"
)

// TestPages_ReadNoRowsOfOtherPages has one merchant and one sale with all rows of their tables, for
// which MariaDB prefers the merchant or the sale alone.
func TestPages_ReadNoRowsOfOtherPages(t *testing.T) {
	t.Parallel()
	onEach(t, sqlServers, func(t *testing.T, dsn string) {
		h := newFixture(t, dsn)
		sale := h.exposed(2000, 1)
		lines := h.lines(sale, 600)
		h.writeAll(sale.GoodsID, lines...)
		by := seckill.WithActor(t.Context(), seckill.Actor{ID: "1", Role: seckill.Merchant})
		sales, entries := make([]saleRow, 600), make([]*auditRow, 600)
		for i := range sales {
			sales[i] = rowOfSale(sale)
			sales[i].GoodsID = int64(i + 1)
			goodsID := sales[i/2].GoodsID
			entries[i] = newAuditEntry(h.db.WithContext(by), salechange.ActClose,
				goodsID, minutes(i))
		}
		require.NoError(t, h.db.CreateInBatches(sales, 100).Error)
		require.NoError(t, h.db.CreateInBatches(entries, 100).Error)
		require.NoError(t, h.db.Exec("ANALYZE TABLE orders, sales, sale_audit").Error)
		for name, call := range map[string]func(s *Store){
			"orders": func(s *Store) {
				require.Len(t, must.Get(s.OrdersOfGoods(t.Context(), sale.GoodsID, "",
					lines[20].OrderSn, 10))(t), 10)
			},
			"sales": func(s *Store) {
				require.Len(t, must.Get(s.SalesOf(t.Context(), "1", 20, 10))(t), 10)
			},
		} {
			require.Less(t, h.rowsRead(call), int64(100), name)
		}
		for _, f := range []salechange.AuditFilter{{}, {Action: salechange.ActClose}} {
			require.Less(t, h.rowsRead(func(s *Store) {
				require.Len(t, must.Get(s.AuditTrail(t.Context(), f, entries[300].ID, 10))(t), 10)
			}), int64(100), f)
		}
		page := h.rowsRead(func(s *Store) {
			f := salechange.AuditFilter{MerchantID: "1"}
			require.Len(t, must.Get(s.AuditTrail(t.Context(), f, entries[300].ID, 10))(t), 10)
		})
		// The merchant's 601 sales, their entries of the page, and the page of the actor.
		require.Less(t, page, int64(1400), "not the 600 entries again")
	})
}

// TestDueEndpoints_ReadNoEventsBehindAnotherOwner has a failing endpoint that lacks all events, and
// one that lags. Neither makes each poll read the events of a merchant whose endpoint has them.
func TestDueEndpoints_ReadNoEventsBehindAnotherOwner(t *testing.T) {
	t.Parallel()
	onEach(t, sqlServers, func(t *testing.T, dsn string) {
		ctx, h := t.Context(), newFixture(t, dsn)
		sale := h.exposed(3, 1)
		lagging := h.endpoint("lagging")
		require.NoError(t, h.db.Exec("UPDATE webhook_endpoints SET owner_id = '2'").Error)
		h.endpoint("e")
		var events []eventRow
		for i := range 600 {
			events = append(events, newEventRow(rowOfSale(sale), event.OrderPaid,
				[]string{fmt.Sprint(i)}, minutes(i)))
		}
		require.NoError(t, insertEvents(h.db.WithContext(ctx), events))
		h.placeEvents()
		head := must.Get(h.EventHead(ctx))(t)
		require.NoError(t, h.db.Exec("UPDATE webhook_endpoints SET position = ? WHERE id = 'e'",
			head-1).Error)
		require.NoError(t, h.db.Exec("ANALYZE TABLE events, webhook_endpoints").Error)
		read := h.rowsRead(func(s *Store) {
			due := must.Get(s.DueEndpoints(ctx, today, true, 10))(t)
			require.Len(t, due, 1)
			require.Equal(t, "e", due[0].ID)
		})
		require.Less(t, read, int64(100))
		require.Equal(t, head, must.Get(h.FindEndpoint(ctx, lagging.ID))(t).Position)
	})
}

// TestHoldingPages_ReadEachOrderOnce has a sale of several pages, for which MySQL prefers another
// index than the primary key.
func TestHoldingPages_ReadEachOrderOnce(t *testing.T) {
	t.Parallel()
	const doublings = 14
	onEach(t, sqlServers, func(t *testing.T, dsn string) {
		h := newFixture(t, dsn)
		sale := h.exposed(1<<doublings, 1)
		h.writeAll(sale.GoodsID, h.lines(sale, 1)...)
		for i := range doublings {
			const columns = "buyer_id, epoch, quantity, amount, status, failure_reason, name, " +
				"phone, created_at, pay_by"
			require.NoError(t, h.db.Exec("INSERT INTO orders (goods_id, order_sn, "+columns+`)
				SELECT goods_id, CONCAT(order_sn, ?), `+columns+" FROM orders",
				fmt.Sprintf("%x", i)).Error)
		}
		require.NoError(t, h.db.Exec("ANALYZE TABLE orders").Error)
		held := 0
		read := h.rowsRead(func(s *Store) {
			for page, err := range s.HoldingPages(t.Context(), sale.GoodsID, sale.Epoch, today) {
				require.NoError(t, err)
				held += len(page)
			}
		})
		require.Equal(t, 1<<doublings, held)
		require.Less(t, read, int64(held+100))
	})
}
