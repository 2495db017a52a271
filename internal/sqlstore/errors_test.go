package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/apierror"
	"flashsale.dev/seckill/internal/cause"
	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/message"
	"flashsale.dev/seckill/internal/order/orderwriter"
	"flashsale.dev/seckill/internal/order/rebuild"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/reservation"
	"flashsale.dev/seckill/internal/seckill/salechange"
	"flashsale.dev/seckill/internal/testing/must"
)

// TestWrapError_SeparatesDataErrorsFromRetryableOnes checks that errors of the infrastructure and
// unknown errors become ErrTryAgain. Errors that a retry would meet again must not.
func TestWrapError_SeparatesDataErrorsFromRetryableOnes(t *testing.T) {
	require.NoError(t, wrapError("op", nil))
	for _, err := range []error{
		seckill.ErrNoSuchGoods, rebuild.ErrFenced, order.ErrNoSuchOrder, order.ErrNoSuchDeadLetter,
		apierror.New(apierror.Conflict, "no"), &orderwriter.AdoptError{},
		fmt.Errorf("x %w", errDoesNotFit), number(1406), number(3819), number(4025), number(1366),
		number(1264), mysql.ErrPktTooLarge,
	} {
		got := wrapError("op", err)
		require.ErrorIs(t, got, err)
		require.NotErrorIs(t, got, order.ErrTryAgain, "a retry does not help against %v", err)
	}
	for _, err := range []error{
		number(1205), number(1213), number(1020), number(1290), number(1792), number(1836),
		number(1040), number(1021), number(1114), number(2006), number(1053), number(1062),
		number(1146), number(1045), number(9999), driver.ErrBadConn, mysql.ErrInvalidConn, io.EOF,
		io.ErrUnexpectedEOF, sql.ErrTxDone, sql.ErrConnDone, context.DeadlineExceeded,
		context.Canceled, &net.OpError{Op: "dial", Err: errors.New("refused")},
		errors.New("never seen before"), order.ErrTryAgain,
	} {
		got := wrapError("op", err)
		require.ErrorIs(t, got, err)
		require.EqualError(t, got, "op: "+err.Error(), "the text claims nothing about the cause")
		require.ErrorIs(t, got, order.ErrTryAgain, "a retry may help against %v", err)
	}
}

// TestOpen_ErrorsNameAServerThatHangs checks the errors of a server that accepts connections and
// answers nothing, as a suspended one does: the log has to name it.
func TestOpen_ErrorsNameAServerThatHangs(t *testing.T) {
	hangs := must.Get((&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0"))(t)
	defer hangs.Close()
	addr := hangs.Addr().String()
	store := must.Get(Open(t.Context(), "u:p@tcp("+addr+")/d?readTimeout=10ms", ""))(t)
	defer store.Close()
	_, sale := store.Sale(t.Context(), 1)
	_, clock := store.Now(t.Context())
	_, orders := store.writtenOrders(t.Context(), 1, []string{"a"})
	for _, err := range []error{sale, clock, orders, store.Ping(t.Context())} {
		require.Equal(t, 1, strings.Count(err.Error(), addr+": "), err)
		require.Equal(t, cause.Unreachable, cause.Of(err), err)
		require.ErrorIs(t, err, order.ErrTryAgain)
	}
	late, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	_, err := store.Sale(late, 1)
	require.ErrorContains(t, err, addr+": ")
	require.Equal(t, cause.Silent, cause.Of(err), err)
}

// TestWithRemedy_NamesAFullDisk fills a database, which SQLite reports as a full disk.
func TestWithRemedy_NamesAFullDisk(t *testing.T) {
	db := must.Get(sql.Open("sqlite",
		filepath.Join(t.TempDir(), "s.db")+"?_pragma=max_page_count(2)"))(t)
	defer db.Close()
	_, err := db.ExecContext(t.Context(), "CREATE TABLE a (b); CREATE TABLE c (d)")
	require.ErrorContains(t, WithRemedy(err, "s.db"), "s.db can't be read or written: free space")
	require.ErrorContains(t, wrapError("write a batch", err),
		"write a batch: the database can't be read or written: free space")
}

// TestOpen_FileThatCannotBeOpenedHasTheRemedy checks a file without a folder. The driver's own text
// for it is "out of memory".
func TestOpen_FileThatCannotBeOpenedHasTheRemedy(t *testing.T) {
	file := filepath.Join(t.TempDir(), "missing", "s.db")
	_, err := Open(t.Context(), "sqlite:"+file, "")
	require.ErrorContains(t, err, file+" can't be opened and written by this user: correct the")
}

func number(n uint16) error { return &mysql.MySQLError{Number: n, Message: "m"} }

// TestOpen_ValidatesTheDSN checks that Open rejects invalid DSNs and sets the parameters that the
// store needs.
func TestOpen_ValidatesTheDSN(t *testing.T) {
	for _, dsn := range []string{
		"mysql://user:hush@host/db", "user:hush/db", "user:a@hush/db", "user:hush@host:3306",
	} {
		_, err := Open(t.Context(), dsn, "")
		require.ErrorContains(t, err, "write user:password@tcp(host:3306)/database")
		require.NotContains(t, err.Error(), "hush")
	}
	for _, dsn := range []string{
		"", "not a dsn", "user@tcp(127.0.0.1:1)/",
		"sqlite:" + filepath.Join(t.TempDir(), "none", "x.db"),
	} {
		_, err := Open(t.Context(), dsn, "")
		require.Error(t, err, dsn)
	}
	cfg := must.Get(mysqlConfig("u:p@tcp(h:3306)/d?loc=Local&interpolateParams=false" +
		"&readTimeout=2s&sql_mode=''&parseTime=false"))(t)
	require.Equal(t, time.UTC, cfg.Loc)
	require.True(t,
		cfg.InterpolateParams && cfg.RejectReadOnly && cfg.ClientFoundRows && cfg.ParseTime)
	require.Equal(t, []time.Duration{dialTimeout, 2 * time.Second, ioTimeout},
		[]time.Duration{cfg.Timeout, cfg.ReadTimeout, cfg.WriteTimeout})
	require.Contains(t, cfg.Params["sql_mode"], "STRICT_TRANS_TABLES")
}

// TestOpen_NeedsNoServer checks that a program can start while MySQL is down. Its calls return
// ErrTryAgain.
func TestOpen_NeedsNoServer(t *testing.T) {
	s := openFixture(t, "u:p@tcp(127.0.0.1:1)/d", "")
	require.ErrorIs(t, s.Ping(t.Context()), order.ErrTryAgain)
	_, err := s.Sale(t.Context(), 1)
	require.ErrorIs(t, err, order.ErrTryAgain)
	_, err = s.WriteBatch(t.Context(), orderwriter.Batch{
		GoodsID: 1, Lines: []reservation.OrderLine{{OrderSn: "a", BuyerID: "1", Quantity: 1}},
	})
	require.ErrorIs(t, err, order.ErrTryAgain)
}

func TestSQLite_UsesDurablePragmas(t *testing.T) {
	h := newFixture(t, sqliteFile(t))
	for pragma, want := range map[string]string{
		"journal_mode": "wal", "synchronous": "2", "busy_timeout": "5000",
	} {
		var got string
		require.NoError(t, h.pool.QueryRowContext(t.Context(), "PRAGMA "+pragma).Scan(&got))
		require.Equal(t, want, got, pragma)
	}
	require.Equal(t, "x.db?"+sqliteParams, sqliteDSN("sqlite:x.db"))
	require.Equal(t, "file:x.db?mode=rw&"+sqliteParams, sqliteDSN("sqlite:file:x.db?mode=rw"))
}

// TestMySQL_RejectsTextThatIsTooLong checks that MySQL rejects text that is longer than its column.
// Without the strict mode it would store the first 255 characters and report no error.
func TestMySQL_RejectsTextThatIsTooLong(t *testing.T) {
	onEachMigrated(t, sqlServers, func(t *testing.T, h fixture) {
		h.writeOrder(h.exposed(10, 1), 1)
		long := strings.Repeat("x", 256)
		err := h.read(t.Context()).Exec("UPDATE orders SET name = ?", long).Error
		require.Error(t, err)
		require.NotErrorIs(t, wrapError("op", err), order.ErrTryAgain)
	})
}

// TestMySQL_EndsAnIdleTransaction checks that MySQL ends an idle transaction. A client that holds
// the lock of the goods row must not block the others forever.
func TestMySQL_EndsAnIdleTransaction(t *testing.T) {
	t.Parallel() // the test mostly waits
	onEachMigrated(t, sqlServers, func(t *testing.T, h fixture) {
		sale := h.exposed(10, 1)
		asleep := must.Get(h.pool.Begin())(t)
		must.Get(asleep.Exec("UPDATE sales SET version = version WHERE goods_id = ?",
			sale.GoodsID))(t)
		require.Eventually(t, func() bool {
			_, err := h.WriteBatch(t.Context(), batchOf(sale.GoodsID, h.line(sale, 1, 1)))
			return err == nil
		}, time.Minute, 10*time.Millisecond)
		require.Error(t, asleep.Commit(), "MySQL ended the connection")
	})
}

// TestMySQL_StatementsOutsideTransactionsAreDurable uses sessions of a server that has autocommit
// off. Another connection sees the statement's change.
func TestMySQL_StatementsOutsideTransactionsAreDurable(t *testing.T) {
	onEach(t, sqlServers, func(t *testing.T, dsn string) {
		h := newFixture(t, dsn)
		cfg := must.Get(mysql.ParseDSN(dsn))(t)
		cfg.Params = map[string]string{"autocommit": "0"}
		off := openFixture(t, cfg.FormatDSN(), "")
		barrier := message.Barrier{Epoch: 1, Token: 1}
		require.NoError(t, off.RecordBarrier(t.Context(), 42, barrier, today))
		require.True(t, must.Get(h.BarrierReached(t.Context(), 42, 1, 1))(t))
	})
}

// TestMySQL_LockedTableEndsTheWait checks that a statement that waits for a table ends before its
// connection does, with an error that names the lock.
func TestMySQL_LockedTableEndsTheWait(t *testing.T) {
	t.Parallel() // the test mostly waits
	onEachMigrated(t, sqlServers, func(t *testing.T, h fixture) {
		sale := h.exposed(10, 1)
		backup := must.Get(h.pool.Conn(t.Context()))(t)
		defer backup.Close()
		must.Get(backup.ExecContext(t.Context(), "LOCK TABLES sales WRITE"))(t)
		_, err := h.Sale(t.Context(), sale.GoodsID)
		refused, ok := errors.AsType[*mysql.MySQLError](err)
		require.True(t, ok, "%v", err)
		require.EqualValues(t, 1205, refused.Number)
		must.Get(backup.ExecContext(t.Context(), "UNLOCK TABLES"))(t)
		must.Get(h.Sale(t.Context(), sale.GoodsID))(t)
	})
}

// TestMySQL_LockedSaleLeavesConnectionsToOthers holds the lock of one sale's row, as a process that
// sleeps does, under many callers. Other sales change meanwhile.
func TestMySQL_LockedSaleLeavesConnectionsToOthers(t *testing.T) {
	onEachMigrated(t, sqlServers, func(t *testing.T, h fixture) {
		sale, other := h.exposed(10, 1), h.exposed(10, 1)
		asleep := must.Get(h.pool.Begin())(t)
		must.Get(asleep.Exec("UPDATE sales SET version = version WHERE goods_id = ?",
			sale.GoodsID))(t)
		const callers = 2 * maxConns
		ctx, stop := context.WithCancel(t.Context())
		var ended sync.WaitGroup
		for range callers {
			ended.Go(func() {
				for ctx.Err() == nil { // MySQL ends a wait for a lock after 5 s
					_, _ = h.Change(ctx, sale.GoodsID,
						salechange.Change{StockDelta: 1}, noKey, today)
				}
			})
		}
		waiting := func() int {
			h.slots.mu.Lock()
			defer h.slots.mu.Unlock()
			if slot := h.slots.sales[sale.GoodsID]; slot != nil {
				return slot.users
			}
			return 0
		}
		require.Eventually(t, func() bool {
			return waiting() == callers
		}, time.Minute, time.Millisecond)
		require.Less(t, h.pool.Stats().InUse, maxConns/2, "connections of one sale")
		must.Get(h.CloseSale(ctx, other.GoodsID, today))(t)
		stop()
		ended.Wait()
		require.NoError(t, asleep.Rollback())
		require.Empty(t, h.slots.sales, "nobody waits")
	})
}
