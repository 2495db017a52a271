package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/sqlstore/primary"
	"flashsale.dev/seckill/internal/testing/servers"
)

// The first server accepts connections and never answers. The second, MariaDB, has no table of
// group members.
func TestPrimary_HangingServerDelaysOneCaller(t *testing.T) {
	asleep, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = asleep.Close() })
	cfg, err := mysql.ParseDSN(env.MariaDB(t).NewDatabase(t))
	require.NoError(t, err)
	cfg.Addr = asleep.Addr().String() + "," + cfg.Addr
	s, err := Open(t.Context(), cfg.FormatDSN(), Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, s.Ping(ctx), order.ErrTryAgain)
	ctx, cancel = context.WithTimeout(t.Context(), primary.ServerTimeout)
	defer cancel()
	require.NoError(t, s.Ping(ctx), "the second caller waits for it, too")
}

// The steps share one group, because starting it takes seconds.
func TestPrimary_FollowsAGroup(t *testing.T) {
	group := servers.MySQLGroup(t)
	name := group.NewDatabase(t)
	h := newFixture(t, group.DSN(name))
	sale := h.exposed(1000, 1000)
	original, err := group.Primary(t.Context())
	require.NoError(t, err)
	var others []*servers.SQLServer
	for _, m := range group.Members() {
		if m != original {
			others = append(others, m)
		}
	}
	t.Run("lists come from a replica that is behind, and nothing else", func(t *testing.T) {
		readsBehind(t, h, sale, group.DSN(name), others[0], name)
	})
	require.NoError(t, group.Heal(t.Context()))
	t.Run("the primary is changed for another", func(t *testing.T) {
		sn := h.writeOrder(sale, 1)
		require.NoError(t, group.Switch(t.Context(), others[0]))
		written(t, h, sale)
		requireOn(t, h, others[0])
		_, err := h.Order(t.Context(), sale.GoodsID, sn)
		require.NoError(t, err)
	})
	t.Run("a reader follows the primary", func(t *testing.T) {
		requireOn(t, h, others[0])
		require.NoError(t, group.Switch(t.Context(), original))
		time.Sleep(primary.RoleTTL)
		requireOn(t, h, original)
	})
	t.Run("the primary dies", func(t *testing.T) {
		require.NoError(t, original.Kill())
		written(t, h, sale)
		h.requireBalanced(sale.GoodsID)
		require.NoError(t, original.Restart(t.Context()))
		written(t, h, sale)
	})
	h.requireBalanced(sale.GoodsID)
}

// written writes a batch as the consumer does: it repeats until success, and once more as if the
// answer had been lost.
func written(t *testing.T, h fixture, sale seckill.Sale) {
	t.Helper()
	b := batchOf(sale.GoodsID, h.lines(sale, 20)...)
	_, err := h.WriteBatch(t.Context(), b)
	for began := time.Now(); errors.Is(err, order.ErrTryAgain) && time.Since(began) < time.Minute; time.Sleep(50 * time.Millisecond) {
		_, err = h.WriteBatch(t.Context(), b)
	}
	require.NoError(t, err)
	out, err := h.WriteBatch(t.Context(), b)
	require.NoError(t, err)
	require.Len(t, out.Existing, 20)
}

// requireOn requires that the given server answers the store's statements.
func requireOn(t *testing.T, h fixture, m *servers.SQLServer) {
	t.Helper()
	var port string
	require.NoError(
		t, h.pool.QueryRowContext(t.Context(), "SELECT CONCAT('127.0.0.1:', @@port)").Scan(&port),
	)
	require.Equal(t, m.Addr(), port)
}

func readsBehind(
	t *testing.T, h fixture, sale seckill.Sale, dsn string, replica *servers.SQLServer, name string,
) {
	before := h.writeOrder(sale, 1)
	db, err := sql.Open("mysql", replica.DSN(name))
	require.NoError(t, err)
	defer db.Close()
	require.Eventually(t, func() bool {
		var n int
		return db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM orders WHERE order_sn = ?", before).
			Scan(&n) ==
			nil && n == 1
	}, time.Minute, 10*time.Millisecond)
	_, err = db.ExecContext(t.Context(), "STOP GROUP_REPLICATION")
	require.NoError(t, err)

	s, err := Open(t.Context(), dsn, Options{ReadDSN: replica.DSN(name)})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	two := fixture{s, t}
	after := two.writeOrder(sale, 2)
	_, _, err = two.CancelOne(t.Context(), sale.GoodsID, before, today)
	require.NoError(t, err)

	// Decisions and the status of one order come from the primary.
	o, err := two.Order(t.Context(), sale.GoodsID, before)
	require.NoError(t, err)
	require.Equal(t, order.Cancelled, o.Status)
	_, err = two.Order(t.Context(), sale.GoodsID, after)
	require.NoError(t, err)
	mine, err := two.OrdersOf(t.Context(), 2, "", 10)
	require.NoError(t, err)
	require.Len(t, mine, 1)
	states, err := two.StatusOf(t.Context(), sale.GoodsID, []string{before, after})
	require.NoError(t, err)
	require.Equal(t, map[string]order.Status{before: order.Cancelled, after: order.Created}, states)

	// Lists come from the replica.
	list, err := two.OrdersOfGoods(t.Context(), sale.GoodsID, "", "", 10)
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.Equal(t, order.Created, list[0].Status)
	counts, err := two.CountOrders(t.Context(), sale.GoodsID)
	require.NoError(t, err)
	require.EqualValues(t, 1, counts[order.Created].Orders)
	exposed, err := two.ExposedSales(t.Context(), 0, 10)
	require.NoError(t, err)
	require.Len(t, exposed, 1)

	// A replica that is away is no hindrance.
	require.NoError(t, replica.Kill())
	list, err = two.OrdersOfGoods(t.Context(), sale.GoodsID, "", "", 10)
	require.NoError(t, err)
	require.Len(t, list, 2)
}
