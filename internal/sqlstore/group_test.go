package sqlstore

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"database/sql"
	"encoding/pem"
	"errors"
	"net"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/sqlstore/primary"
	"flashsale.dev/seckill/internal/testing/must"
	"flashsale.dev/seckill/internal/testing/servers"
)

// TestPrimary_HangingServerDelaysOneCaller checks that a server that hangs delays only the first
// caller. The first address accepts connections and never answers. The second is a MariaDB, which
// has no table of group members.
func TestPrimary_HangingServerDelaysOneCaller(t *testing.T) {
	asleep := must.Get((&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { _ = asleep.Close() })
	cfg := must.Get(mysql.ParseDSN(env.MariaDB(t).NewDatabase(t)))(t)
	cfg.Addr = asleep.Addr().String() + "," + cfg.Addr
	s := openFixture(t, cfg.FormatDSN(), "")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, s.Ping(ctx), order.ErrTryAgain)
	ctx, cancel = context.WithTimeout(t.Context(), primary.ServerTimeout)
	defer cancel()
	require.NoError(t, s.Ping(ctx), "the second caller must not wait for the first server")
}

// TestPrimary_FollowsAGroup checks that the store follows the primary of a group. The parts share
// one group, because starting it takes seconds.
func TestPrimary_FollowsAGroup(t *testing.T) {
	t.Parallel() // the test mostly waits
	group := servers.MySQLGroup(t)
	name := group.NewDatabase(t)
	h := newFixture(t, group.DSN(name))
	sale := h.exposed(1000, 1000)
	original := must.Get(group.Primary(t.Context()))(t)
	isOther := func(m *servers.SQLServer) bool { return m != original }
	other := group.Members()[slices.IndexFunc(group.Members(), isOther)]
	t.Run("each member is verified by its own name", func(t *testing.T) {
		verifiesEach(t, group, group.DSN(name))
	})
	t.Run("lists come from a replica that is behind, and nothing else", func(t *testing.T) {
		readsBehind(t, h, sale, group.DSN(name), other, name)
	})
	require.NoError(t, group.Heal(t.Context()))
	t.Run("the primary is changed for another", func(t *testing.T) {
		sn := h.writeOrder(sale, 1)
		require.NoError(t, group.Switch(t.Context(), other))
		written(t, h, sale)
		requireOn(t, h, other)
		h.order(sale.GoodsID, sn)
	})
	t.Run("a reader follows the primary", func(t *testing.T) {
		requireOn(t, h, other)
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

// written writes a batch as the consumer does and retries until success. It then writes the batch
// again, because an answer may be lost.
func written(t *testing.T, h fixture, sale seckill.Sale) {
	t.Helper()
	b := batchOf(sale.GoodsID, h.lines(sale, 20)...)
	var err error
	require.Eventually(t, func() bool {
		_, err = h.WriteBatch(t.Context(), b)
		return !errors.Is(err, order.ErrTryAgain)
	}, time.Minute, 50*time.Millisecond, "the group takes no writes")
	require.NoError(t, err)
	require.Len(t, h.write(b).Existing, 20)
}

// requireOn requires that the given server answers the store's statements.
func requireOn(t *testing.T, h fixture, m *servers.SQLServer) {
	t.Helper()
	var port string
	require.NoError(t,
		h.pool.QueryRowContext(t.Context(), "SELECT CONCAT('127.0.0.1:', @@port)").Scan(&port))
	require.Equal(t, m.Addr(), port)
}

// readsBehind checks that lists come from a replica that is behind, and all other reads from the
// primary.
func readsBehind(
	t *testing.T, h fixture, sale seckill.Sale, dsn string, replica *servers.SQLServer, name string,
) {
	before := h.writeOrder(sale, 1)
	db := must.Get(sql.Open("mysql", replica.DSN(name)))(t)
	defer db.Close()
	require.Eventually(t, func() bool {
		var n int
		err := db.QueryRowContext(t.Context(), "SELECT 1 FROM orders WHERE order_sn = ?", before).
			Scan(&n)
		return err == nil
	}, time.Minute, 10*time.Millisecond)
	must.Get(db.ExecContext(t.Context(), "STOP GROUP_REPLICATION"))(t)

	two := openFixture(t, dsn, replica.DSN(name))
	after := two.writeOrder(sale, 2)
	must.Get(two.CancelOne(sale.GoodsID, before, today))(t)

	// The primary serves decisions and the status of one order.
	require.Equal(t, order.Cancelled, two.order(sale.GoodsID, before).Status)
	two.order(sale.GoodsID, after)
	require.Len(t, must.Get(two.OrdersOf(t.Context(), "2", "", 10))(t), 1)
	require.Equal(t, map[string]order.Status{before: order.Cancelled, after: order.Created},
		must.Get(two.StatusOf(t.Context(), sale.GoodsID, []string{before, after}))(t))

	// The replica serves lists.
	list := must.Get(two.OrdersOfGoods(t.Context(), sale.GoodsID, "", "", 10))(t)
	require.Len(t, list, 1)
	require.Equal(t, order.Created, list[0].Status)
	require.EqualValues(t, 1,
		must.Get(two.CountOrders(t.Context(), sale.GoodsID))(t)[order.Created].Orders)
	require.Len(t, must.Get(two.ExposedSales(t.Context(), 0, 10))(t), 1)

	// The primary serves lists while the replica is down.
	require.NoError(t, replica.Kill())
	list = must.Get(two.OrdersOfGoods(t.Context(), sale.GoodsID, "", "", 10))(t)
	require.Len(t, list, 2)
}

// verifiesEach checks that TLS verifies each member by the host of its own address. The members'
// certificate is for 127.0.0.1, and not for localhost.
func verifiesEach(t *testing.T, group *servers.SQLGroup, dsn string) {
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	own := server.TLS.Certificates[0]
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for file, block := range map[string]pem.Block{
		cert: {Type: "CERTIFICATE", Bytes: own.Certificate[0]},
		key: {
			Type: "PRIVATE KEY", Bytes: must.Get(x509.MarshalPKCS8PrivateKey(own.PrivateKey))(t),
		},
	} {
		require.NoError(t, os.WriteFile(file, pem.EncodeToMemory(&block), 0o600))
	}
	for _, m := range group.Members() {
		db := must.Get(sql.Open("mysql", m.DSN("")))(t)
		for _, statement := range []string{
			"SET GLOBAL ssl_ca = '" + cert + "'", "SET GLOBAL ssl_cert = '" + cert + "'",
			"SET GLOBAL ssl_key = '" + key + "'", "ALTER INSTANCE RELOAD TLS",
		} {
			must.Get(db.ExecContext(t.Context(), statement))(t)
		}
		require.NoError(t, db.Close())
	}
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	require.NoError(t, mysql.RegisterTLSConfig(t.Name(), &tls.Config{RootCAs: roots}))
	defer mysql.DeregisterTLSConfig(t.Name())
	dsn += "?tls=" + url.QueryEscape(t.Name())
	require.NoError(t, openFixture(t, dsn, "").Ping(t.Context()))
	require.ErrorContains(t, openFixture(t, strings.ReplaceAll(dsn, "127.0.0.1", "localhost"), "").
		Ping(t.Context()), "certificate")
}
