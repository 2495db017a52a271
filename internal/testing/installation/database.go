package installation

import (
	"database/sql"
	"testing"

	_ "github.com/go-sql-driver/mysql" // the tests ask MySQL themselves, not through the store
	"github.com/stretchr/testify/require"
)

// Facts is what MySQL says of one sale, asked by the tests themselves.
type Facts struct {
	Stock, Total, Orders, Units, Buyers, Held, MostHeld int64
	Failed, Dead, NotGiven, OpenCuts                    int64
}

// Facts reads them.
func (r *Installation) Facts(t testing.TB, goods string) Facts {
	t.Helper()
	db, err := sql.Open("mysql", r.DSN)
	require.NoError(t, err)
	defer db.Close()
	var f Facts
	ask := func(query string, into ...any) {
		t.Helper()
		require.NoError(t, db.QueryRowContext(t.Context(), query, goods).Scan(into...))
	}
	ask(`SELECT stock, total FROM sales WHERE goods_id = ?`, &f.Stock, &f.Total)
	ask(`SELECT COUNT(*), COALESCE(SUM(quantity), 0), COUNT(DISTINCT buyer_id) FROM orders
		WHERE goods_id = ? AND status IN ('created', 'paid')`, &f.Orders, &f.Units, &f.Buyers)
	ask(`SELECT COALESCE(SUM(held), 0), COALESCE(MAX(held), 0) FROM
		(SELECT SUM(held) AS held FROM buyer_holdings WHERE goods_id = ? GROUP BY buyer_id) AS buyers`, &f.Held, &f.MostHeld)
	ask(`SELECT COUNT(*) FROM orders WHERE goods_id = ? AND status = 'failed'`, &f.Failed)
	ask(`SELECT COUNT(*) FROM dead_letters WHERE goods_id = ?`, &f.Dead)
	ask(`SELECT COUNT(*) FROM stock_moves WHERE goods_id = ? AND given_at IS NULL`, &f.NotGiven)
	ask(`SELECT COUNT(*) FROM stock_cuts WHERE goods_id = ? AND state = 'open'`, &f.OpenCuts)
	return f
}

// OrderSns lists the numbers of a goods' active orders.
func (r *Installation) OrderSns(t testing.TB, goods string) map[string]bool {
	t.Helper()
	db, err := sql.Open("mysql", r.DSN)
	require.NoError(t, err)
	defer db.Close()
	rows, err := db.QueryContext(t.Context(), `SELECT order_sn FROM orders WHERE goods_id = ? AND status IN ('created', 'paid')`, goods)
	require.NoError(t, err)
	defer rows.Close()
	sns := make(map[string]bool)
	for rows.Next() {
		var sn string
		require.NoError(t, rows.Scan(&sn))
		sns[sn] = true
	}
	require.NoError(t, rows.Err())
	return sns
}
