package sqlstore

import (
	"testing"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testing/must"
)

// TestMigrate_KeepsNumericUserIDs checks that the step to text keeps the ids of earlier releases,
// every column and every index. Orders of such buyers count against their limits.
func TestMigrate_KeepsNumericUserIDs(t *testing.T) {
	onEach(t, databases, func(t *testing.T, dsn string) {
		h := newFixture(t, dsn)
		before := must.Get(h.db.Migrator().GetIndexes(&orderRow{}))(t)
		sale := h.exposed(5, 2)
		h.writeOrder(sale, 42)
		p := must.Get(h.provider())(t)
		must.Get(p.DownTo(t.Context(), 19))(t)
		if isSQLite(h.db) { // where the type of each value counts, not only the column's
			require.NoError(t, h.db.Exec(`UPDATE buyer_holdings SET buyer_id = 42`).Error)
			require.NoError(t, h.db.Exec(`UPDATE orders SET buyer_id = 42`).Error)
		}
		require.NoError(t, h.db.Exec(`INSERT INTO sale_audit (goods_id, id, actor_id, actor_role,
			action, was, became, made_at) VALUES (?, 'system', '0', '', 'close', '{}', '{}', 1)`,
			sale.GoodsID).Error)
		require.NoError(t, h.Migrate(t.Context()))

		orders := must.Get(h.OrdersOf(t.Context(), "42", "", 10))(t)
		require.Len(t, orders, 1)
		require.Equal(t, "42", orders[0].BuyerID)
		require.Equal(t, map[string]int64{"42": 1}, h.held(sale.GoodsID))
		h.writeOrder(sale, 42)
		h.requireBalanced(sale.GoodsID)
		require.Len(t, must.Get(h.db.Migrator().GetIndexes(&orderRow{}))(t), len(before))
		var system int64
		require.NoError(t,
			h.db.Model(&auditRow{}).Where("id = 'system' AND actor_id = ''").Count(&system).Error)
		require.EqualValues(t, 1, system)
	})
}

// TestUserIDs_AreOpaque checks that ids which are equal as numbers, in upper case or as patterns
// are different buyers.
func TestUserIDs_AreOpaque(t *testing.T) {
	onEach(t, databases, func(t *testing.T, dsn string) {
		h := newFixture(t, dsn)
		ids := []string{"7", "07", "7.0", "0x7", "auth0|A", "auth0|a", "%", "_", "'", `\`}
		sale := h.exposed(20, 1)
		for _, id := range ids {
			line := h.line(sale, 1, 1)
			line.BuyerID = id
			require.Len(t, h.writeAll(sale.GoodsID, line).Created, 1, id)
		}
		for _, id := range ids {
			require.Len(t, must.Get(h.OrdersOf(t.Context(), id, "", 10))(t), 1, id)
			require.EqualValues(t, 1, h.held(sale.GoodsID)[id], id)
		}
		h.requireBalanced(sale.GoodsID)
	})
}
