package sqlstore

import (
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"flashsale.dev/seckill/internal/apierror"
	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/orderwriter"
	"flashsale.dev/seckill/internal/order/payment"
	"flashsale.dev/seckill/internal/ordersn"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/reservation"
	"flashsale.dev/seckill/internal/seckill/salechange"
	"flashsale.dev/seckill/internal/testing/must"
	"flashsale.dev/seckill/internal/testing/servers"
)

// database is a system that the tests run on.
type database struct {
	name   string
	server func(testing.TB) *servers.SQLServer // nil for SQLite
}

var databases = []database{{"SQLite", nil}, {"MariaDB", env.MariaDB}, {"MySQL", env.MySQL}}

// empty returns a database without tables.
func (d database) empty(tb testing.TB) string {
	if d.server == nil {
		return sqliteFile(tb)
	}
	return d.server(tb).NewDatabase(tb)
}

// migrated returns a database with the schema.
func (d database) migrated(tb testing.TB) string {
	migrate := func(dsn string) {
		s := must.Get(Open(tb.Context(), dsn, ""))(tb)
		require.NoError(tb, errors.Join(s.Migrate(tb.Context()), s.Close()))
	}
	if d.server == nil {
		dsn := sqliteFile(tb)
		migrate(dsn)
		return dsn
	}
	return d.server(tb).NewCopy(tb, migrate)
}

func sqliteFile(tb testing.TB) string {
	return "sqlite:" + filepath.Join(tb.TempDir(), "seckill.db")
}

// sqlServers are the databases that several processes share.
var sqlServers = databases[1:]

// onEach runs a test on each system, in an empty database.
func onEach(t *testing.T, systems []database, test func(t *testing.T, dsn string)) {
	t.Helper()
	for _, d := range systems {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			test(t, d.empty(t))
		})
	}
}

// onEachMigrated runs a test on each system, in a database that has the schema and no rows.
func onEachMigrated(t *testing.T, systems []database, test func(t *testing.T, h fixture)) {
	t.Helper()
	for _, d := range systems {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			test(t, openFixture(t, d.migrated(t), ""))
		})
	}
}

// TestStore runs the methods of fixture that take a *testing.T on every database. The tests of a
// database follow one another on the same tables, because migrating takes longer than most of them.
// Run one with -run TestStore/MariaDB/TestSale_StoresExtremeValues.
func TestStore(t *testing.T) {
	t.Parallel()
	onEach(t, databases, func(t *testing.T, dsn string) {
		newFixture(t, dsn)
		rec := &recorder{texts: map[string]map[string]bool{}}
		for method := range reflect.TypeFor[fixture]().Methods() {
			if test, ok := method.Func.Interface().(func(fixture, *testing.T)); ok {
				t.Run(method.Name, func(t *testing.T) {
					h := emptyFixture(t, dsn)
					rec.record(h.Store)
					test(h, t)
				})
			} else {
				require.False(t, strings.HasPrefix(method.Name, "Test"),
					"%s is no test", method.Name)
			}
		}
		t.Run("Statements_ContainTheShardKey", rec.requireShardKeys)
	})
}

var (
	today  = time.Date(2026, 11, 11, 10, 0, 0, 0, time.UTC)
	orders = ordersn.NewKeys([]byte("a secret of the tests, 32 bytes."))
	serial atomic.Int64 // of order numbers and drafts, which sort by it
)

// fixture is a store and the helpers that tests use on it.
type fixture struct {
	*Store
	t testing.TB
}

// newFixture opens a store and brings its schema up to date.
func newFixture(t testing.TB, dsn string) fixture {
	t.Helper()
	h := openFixture(t, dsn, "")
	require.NoError(t, h.Migrate(t.Context()))
	return h
}

// emptyFixture opens a store on an existing schema and empties its tables.
func emptyFixture(t testing.TB, dsn string) fixture {
	t.Helper()
	h := openFixture(t, dsn, "")
	for _, table := range must.Get(h.db.Migrator().GetTables())(t) {
		if table != "goose_db_version" {
			require.NoError(t, h.db.Exec("DELETE FROM "+table).Error)
		}
	}
	return h
}

func openFixture(t testing.TB, dsn, readDSN string) fixture {
	t.Helper()
	s := must.Get(Open(t.Context(), dsn, readDSN))(t)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return fixture{s, t}
}

func newSale(units, limit int64) seckill.NewSale {
	return seckill.NewSale{
		Title: "Überraschung 🎁", Price: 1999, Stock: units, PerBuyerLimit: limit,
		StartAt: today, EndAt: today.Add(time.Hour), Rate: seckill.DefaultRate(),
	}
}

// draft creates a merchant's sale.
func (h fixture) draft(merchant, units, limit int64) seckill.Sale {
	h.t.Helper()
	sale := newSale(units, limit).Draft(fmt.Sprint(merchant), earlierToday())
	sale.CreatedAt, sale.UpdatedAt = today, today
	must.Get(h.CreateSale(h.t.Context(), sale, noKey))(h.t)
	return sale
}

// earlierToday returns a new millisecond: two ids of one may be the same.
func earlierToday() time.Time {
	return today.Add(time.Duration(serial.Add(1))*time.Millisecond - 12*time.Hour)
}

// exposed creates a sale and begins its first epoch.
func (h fixture) exposed(units, limit int64) seckill.Sale {
	h.t.Helper()
	return h.beginEpoch(h.draft(1, units, limit).GoodsID)
}

// at returns the times of an epoch that begins at a moment by every clock.
func at(now time.Time) order.Times {
	return order.Times{Now: now, PayBy: now.Add(time.Hour)}
}

// beginEpoch begins the next epoch, as a rebuild does.
func (h fixture) beginEpoch(goodsID int64) seckill.Sale {
	h.t.Helper()
	token := must.Get(h.NextRebuildToken(h.t.Context(), goodsID))(h.t).Number
	return must.Get(h.BeginEpoch(h.t.Context(), goodsID, token, at(today)))(h.t)
}

// heldOrders returns the orders that a sale's epoch starts from.
func (h fixture) heldOrders(sale seckill.Sale) (list []order.Held) {
	h.t.Helper()
	for page, err := range h.HoldingPages(h.t.Context(), sale.GoodsID, sale.Epoch, today) {
		require.NoError(h.t, err)
		require.NotEmpty(h.t, page)
		require.LessOrEqual(h.t, len(page), holdingPage)
		list = append(list, page...)
	}
	return list
}

// line returns an order line with a new number of the sale's epoch.
func (h fixture) line(sale seckill.Sale, buyer, quantity int64) reservation.OrderLine {
	h.t.Helper()
	issued := earlierToday()
	id := fmt.Sprint(buyer)
	return reservation.OrderLine{
		OrderSn: orders.Issue(sale.GoodsID, id, issued).String(), BuyerID: id,
		Quantity: quantity, Epoch: sale.Epoch, Name: "Łukasz 王", Phone: "+49 30 1234",
	}
}

// lines returns one line of one unit for each of n buyers.
func (h fixture) lines(sale seckill.Sale, n int) []reservation.OrderLine {
	h.t.Helper()
	list := make([]reservation.OrderLine, n)
	for i := range list {
		list[i] = h.line(sale, int64(i+1), 1)
	}
	return list
}

// delivered is the delivery information of each line of a batch.
var delivered = order.DeliveryInfo{
	Origin: "seckill.orders.4", Attempts: 3, FirstSeenAt: today.Add(30 * time.Second),
}

// batchOf returns a batch as the consumer builds it.
func batchOf(goodsID int64, lines ...reservation.OrderLine) orderwriter.Batch {
	b := orderwriter.Batch{
		GoodsID: goodsID, Lines: lines,
		Deliveries: make(map[string]order.DeliveryInfo),
		Times:      order.Times{Now: today.Add(time.Minute), PayBy: today.Add(16 * time.Minute)},
	}
	for _, l := range lines {
		b.Deliveries[l.OrderSn] = delivered
	}
	return b
}

func (h fixture) write(b orderwriter.Batch) order.Outcome {
	h.t.Helper()
	return must.Get(h.WriteBatch(h.t.Context(), b))(h.t)
}

// writeAll writes lines as the consumer does.
func (h fixture) writeAll(goodsID int64, lines ...reservation.OrderLine) order.Outcome {
	h.t.Helper()
	return h.write(batchOf(goodsID, lines...))
}

// writeFailed writes a line as a failed order.
func (h fixture) writeFailed(
	goodsID int64, l reservation.OrderLine, reason order.FailureReason,
) order.Outcome {
	h.t.Helper()
	d := order.DeadLetter{GoodsID: goodsID, Reason: reason}
	return must.Get(h.WriteFailed(h.t.Context(), l, d, today))(h.t)
}

// auditOf lists the newest entries of a sale in the audit log.
func (h fixture) auditOf(goodsID int64, limit int) []salechange.AuditEntry {
	h.t.Helper()
	f := salechange.AuditFilter{GoodsID: goodsID}
	return must.Get(h.AuditTrail(h.t.Context(), f, "", limit))(h.t)
}

// writeOrder writes an order of one unit and returns its number.
func (h fixture) writeOrder(sale seckill.Sale, buyer int64) string {
	h.t.Helper()
	l := h.line(sale, buyer, 1)
	require.Equal(h.t, []string{l.OrderSn}, h.writeAll(sale.GoodsID, l).Created)
	return l.OrderSn
}

// Pay pays an order with a payment of its own and returns the order. It returns Conflict if the
// payment will be refunded.
func (h fixture) Pay(goodsID int64, sn string, now time.Time) (order.Order, error) {
	o, err := h.find(goodsID, sn)
	if err != nil {
		return o, err
	}
	r, err := h.receiveOne(payment.Payment{
		ID: "p-" + sn[:min(len(sn), 60)], GoodsID: goodsID, OrderSn: sn, Amount: o.Amount,
	}, now)
	if err == nil && r.State != payment.Kept {
		err = apierror.New(apierror.Conflict, "the payment goes back: %s", r.Reason)
	}
	return r.Order, err
}

// receiveOne receives a single payment.
func (h fixture) receiveOne(p payment.Payment, now time.Time) (payment.Receipt, error) {
	list, err := h.Receive(h.t.Context(), p.GoodsID, []payment.Payment{p}, now)
	if err != nil {
		return payment.Receipt{}, err
	}
	return list[0], list[0].Err
}

// CancelOne cancels a single order.
func (h fixture) CancelOne(goodsID int64, sn string, now time.Time) (payment.Cancellation, error) {
	list, err := h.Cancel(h.t.Context(), goodsID, []string{sn}, now)
	if err != nil {
		return payment.Cancellation{}, err
	}
	return list[0], list[0].Err
}

// order reads an order and requires that it exists.
func (h fixture) order(goodsID int64, sn string) order.Order {
	h.t.Helper()
	return must.Get(h.find(goodsID, sn))(h.t)
}

// find returns an order, or order.ErrNoSuchOrder.
func (h fixture) find(goodsID int64, sn string) (order.Order, error) {
	orders, err := h.OrdersByNumber(h.t.Context(), goodsID, []string{sn})
	if err == nil && len(orders) == 0 {
		err = order.ErrNoSuchOrder
	}
	return append(orders, order.Order{})[0], err
}

// sale reads a sale and requires that it exists.
func (h fixture) sale(goodsID int64) seckill.Sale {
	h.t.Helper()
	return must.Get(h.Sale(h.t.Context(), goodsID))(h.t)
}

// deadLetters lists the first 100 dead letters.
func (h fixture) deadLetters() []order.DeadLetter {
	h.t.Helper()
	return must.Get(h.DeadLetters(h.t.Context(), "", 100))(h.t)
}

func orderSns(list []order.Order) []string {
	return mapSlice(list, func(o order.Order) string { return o.OrderSn })
}

// all reads every order of a goods, page by page.
func (h fixture) all(goodsID int64) []order.Order {
	h.t.Helper()
	var list []order.Order
	for before := ""; ; {
		page := must.Get(h.OrdersOfGoods(h.t.Context(), goodsID, "", before, 100))(h.t)
		if len(page) == 0 {
			return list
		}
		list, before = append(list, page...), page[len(page)-1].OrderSn
	}
}

// holdsUnits reports whether an order of this status holds units.
func holdsUnits(s order.Status) bool { return s == order.Created || s == order.Paid }

// requireBalanced requires three things of a goods: total = stock + active, each holding = the
// active units of its buyer, and no number twice. It returns the active units.
func (h fixture) requireBalanced(goodsID int64) int64 {
	h.t.Helper()
	sale := h.sale(goodsID)
	seen, byBuyer, active := map[string]bool{}, map[string]int64{}, int64(0)
	for _, o := range h.all(goodsID) {
		require.False(h.t, seen[o.OrderSn], "number written twice")
		seen[o.OrderSn] = true
		if holdsUnits(o.Status) {
			active += o.Quantity
			byBuyer[o.BuyerID] += o.Quantity
			require.LessOrEqual(h.t, byBuyer[o.BuyerID], sale.MaxPerBuyerLimit)
		}
	}
	require.Equal(h.t, sale.Total, sale.Stock+active, "total = stock + active")
	require.Equal(h.t, seckill.Database{Stock: sale.Stock, Active: active},
		must.Get(h.Database(h.t.Context(), goodsID))(h.t))
	require.Equal(h.t, byBuyer, h.held(goodsID), "holdings = active by buyer")
	return active
}

// held reads the buyers' holdings that are not zero.
func (h fixture) held(goodsID int64) map[string]int64 {
	h.t.Helper()
	var rows []holdingRow
	require.NoError(h.t,
		h.read(h.t.Context()).Where("goods_id = ? AND held <> 0", goodsID).Find(&rows).Error)
	held := make(map[string]int64)
	for _, r := range rows {
		held[r.BuyerID] = r.Held
	}
	return held
}

// moves lists the unreleased moves of a goods.
func (h fixture) moves(goodsID int64) []order.StockMove {
	h.t.Helper()
	return must.Get(h.UnreleasedMoves(h.t.Context(), goodsID, today.Add(24*time.Hour),
		100_000))(h.t)
}

// requireUnreleased requires the number of unreleased moves and cuts, and the oldest one's time.
func (h fixture) requireUnreleased(goodsID int64, n int, oldest time.Time) {
	h.t.Helper()
	got, at, err := h.Unreleased(h.t.Context(), goodsID)
	require.NoError(h.t, err)
	require.Equal(h.t, n, got)
	require.Equal(h.t, oldest, at)
}

// requireConflict requires a Conflict.
func requireConflict(t testing.TB, err error, why ...string) {
	t.Helper()
	require.Equal(t, apierror.Conflict, apierror.ReasonOf(err), "%v, not %v", why, err)
}

var env = servers.NewSuite()

func TestMain(m *testing.M) { goleak.VerifyTestMain(env.Around(m)) }
