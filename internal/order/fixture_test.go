package order_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"flashsale.dev/seckill/internal/app"
	"flashsale.dev/seckill/internal/memqueue"
	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/inventory"
	"flashsale.dev/seckill/internal/order/message"
	"flashsale.dev/seckill/internal/order/orderwriter"
	"flashsale.dev/seckill/internal/order/purchase"
	"flashsale.dev/seckill/internal/ordersn"
	"flashsale.dev/seckill/internal/paymentprovider"
	"flashsale.dev/seckill/internal/redisstore"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/reservation"
	"flashsale.dev/seckill/internal/seckill/salechange"
	"flashsale.dev/seckill/internal/sqlstore"
	"flashsale.dev/seckill/internal/testing/must"
	"flashsale.dev/seckill/internal/testing/servers"
)

var env = servers.NewSuite()

func TestMain(m *testing.M) { goleak.VerifyTestMain(env.Around(m)) }

const (
	within = time.Minute
	tick   = 5 * time.Millisecond
)

// fixture is every service on embedded servers. Its workers run from runWorkers until stop.
type fixture struct {
	app.Services
	t      *testing.T
	driver string // of database/sql
	file   string // the path of the database, or the name of its source
	mini   *miniredis.Miniredis
	store  *sqlstore.Store
	redis  *redisstore.Store
	queue  *flakyQueue
	parts  app.Parts
	keys   *ordersn.Keys
}

// flakyQueue is a queue that a test can take down.
type flakyQueue struct {
	*memqueue.Queue
	down atomic.Bool
}

var errDown = errors.Join(order.ErrQueueDown, errors.New("stopped by the test"))

func (f *flakyQueue) Publish(ctx context.Context, goodsID int64, body []byte) error {
	if f.down.Load() {
		return errDown
	}
	return f.Queue.Publish(ctx, goodsID, body)
}

func (f *flakyQueue) DownReason() error { return nil }

func settings() app.Settings {
	return app.Settings{
		OrderSecrets:   [][]byte{[]byte("an order secret")},
		PublishTimeout: 200 * time.Millisecond, PaymentTimeout: time.Hour,
		BatchSize: 100, BatchLinger: time.Millisecond,
	}
}

// newMini starts an embedded Redis and returns it with a client.
func newMini(t *testing.T) (*miniredis.Miniredis, redis.UniversalClient) {
	mini := miniredis.RunT(t)
	client := redis.NewUniversalClient(&redis.UniversalOptions{Addrs: []string{mini.Addr()}})
	t.Cleanup(func() { _ = client.Close() })
	return mini, client
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	file := filepath.Join(t.TempDir(), "h.db")
	store := must.Get(sqlstore.Open(t.Context(), "sqlite:"+file, ""))(t)
	t.Cleanup(func() { _ = store.Close() })
	require.NoError(t, store.Migrate(t.Context()))
	mini, client := newMini(t)
	h := &fixture{
		t: t, driver: "sqlite", file: file, mini: mini, store: store,
		queue: &flakyQueue{Queue: memqueue.New(1)},
		redis: redisstore.New(client, redisstore.Options{Lease: "today"}),
		keys:  ordersn.NewKeys(settings().OrderSecrets...),
	}
	h.parts = app.Parts{
		Provider:   paymentprovider.Test{},
		Redis:      client,
		RedisStore: h.redis,
		Store:      store,
		Queue:      h.queue,
		Source:     h.queue,
		Log:        slog.New(slog.DiscardHandler),
	}
	h.Services = app.NewServices(h.parts, settings())
	return h
}

// runWorkers runs the workers until the returned function is called or the test ends.
func (h *fixture) runWorkers(s app.Settings) (stop func()) {
	return h.runAll(app.NewWorkers(h.parts, s))
}

// runAllBut is runWorkers without some workers.
func (h *fixture) runAllBut(without func(app.Worker) bool) {
	h.runAll(slices.DeleteFunc(app.NewWorkers(h.parts, settings()), without))
}

func (h *fixture) runAll(workers []app.Worker) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- app.Run(ctx, within, workers) }()
	var stopped bool
	stop = func() {
		if !stopped {
			stopped = true
			cancel()
			require.NoError(h.t, <-done)
		}
	}
	h.t.Cleanup(stop)
	return stop
}

func (h *fixture) releaser() *inventory.StockReleaser {
	stores := inventory.Stores{Store: h.store, Redis: h.redis, Log: h.parts.Log}
	return &inventory.StockReleaser{Stores: stores}
}

// exposeSale creates and exposes a sale that sells now.
func (h *fixture) exposeSale(units, limit int64) seckill.Sale {
	h.t.Helper()
	merchant := seckill.Actor{ID: "1", Role: seckill.Merchant}
	sale := must.Get(h.Sales.Create(h.t.Context(), merchant, seckill.NewSale{
		Title: "a kettle", Price: 250, Stock: units, PerBuyerLimit: limit,
		Rate: seckill.DefaultRate(), StartAt: time.Now().Add(-time.Hour),
		EndAt: time.Now().Add(time.Hour),
	}, salechange.IdempotencyKey{}))(h.t)
	return must.Get(h.Sales.Expose(h.t.Context(), merchant, sale.GoodsID))(h.t)
}

var operator = seckill.Actor{ID: "1", Role: seckill.Operator}

func buyer(id int64) seckill.Actor {
	return seckill.Actor{ID: fmt.Sprint(id), Role: seckill.Buyer, Name: "韩梅梅", Phone: "13800000000"}
}

// request returns a purchase with a new path.
func (h *fixture) request(goods, buyerID, quantity int64) purchase.Request {
	h.t.Helper()
	v := must.Get(h.Catalog.Admit(h.t.Context(), goods))(h.t)
	path, _, err := h.Catalog.IssuePath(v, time.Now(), fmt.Sprint(buyerID))
	require.NoError(h.t, err)
	return purchase.Request{
		GoodsID: goods, Buyer: buyer(buyerID), Path: path, Quantity: quantity,
	}
}

// buy places an order and returns its number.
func (h *fixture) buy(goods, buyerID, quantity int64) string {
	h.t.Helper()
	return h.place(h.request(goods, buyerID, quantity))
}

// place repeats a purchase until it is confirmed: a busy machine may need more than one deadline.
func (h *fixture) place(p purchase.Request) (sn string) {
	h.t.Helper()
	require.Eventually(h.t, func() (ok bool) {
		var err error
		sn, err = h.Purchases.Place(h.t.Context(), p)
		return err == nil
	}, within, tick)
	return sn
}

// pending returns the lines of orders that Redis lists as pending.
func (h *fixture) pending(goods int64, sns ...string) (lines []reservation.OrderLine) {
	h.t.Helper()
	for _, sn := range sns {
		line, pending, err := h.redis.Pending(h.t.Context(), goods, sn)
		require.NoError(h.t, err)
		require.True(h.t, pending)
		lines = append(lines, line)
	}
	return lines
}

// commit writes orders of epoch 1 to MySQL and settles none, as a consumer that stops there.
func (h *fixture) commit(goods int64, lines ...reservation.OrderLine) {
	h.t.Helper()
	now := time.Now()
	b := orderwriter.Batch{
		GoodsID: goods, Lines: lines, Times: order.Times{Now: now, PayBy: now.Add(time.Hour)},
	}
	must.Get(h.store.WriteBatch(h.t.Context(), b))(h.t)
}

func (h *fixture) find(buyerID int64, sn string) order.Order {
	h.t.Helper()
	return must.Get(h.Orders.Find(h.t.Context(), buyer(buyerID), sn))(h.t)
}

// becomes waits until an order has the status.
func (h *fixture) becomes(buyerID int64, sn string, status order.Status) order.Order {
	h.t.Helper()
	var o order.Order
	require.Eventually(h.t, func() bool {
		var err error
		o, err = h.Orders.Find(h.t.Context(), buyer(buyerID), sn)
		return err == nil && o.Status == status
	}, within, tick, "order %s is %+v", sn, o)
	return o
}

// view reads a sale in Redis.
func (h *fixture) view(goods int64) seckill.View {
	h.t.Helper()
	return must.Get(h.redis.View(h.t.Context(), goods))(h.t)
}

func (h *fixture) ledger(goods int64) seckill.Ledger {
	h.t.Helper()
	return must.Get(h.Sales.Ledger(h.t.Context(), operator, goods))(h.t)
}

// settles waits until the ledger balances with these numbers of available and sold units.
func (h *fixture) settles(goods, available, sold int64) {
	h.t.Helper()
	var l seckill.Ledger
	require.Eventually(h.t, func() bool {
		var err error
		l, err = h.Sales.Ledger(h.t.Context(), operator, goods)
		return err == nil && l.Balanced && l.Pending == 0 && l.Available == available &&
			l.Sold == sold &&
			l.Database == (seckill.Database{Stock: available, Active: sold})
	}, within, tick, "the ledger is %+v", l)
}

// publish sends a message to the queue directly, without the purchase service.
func (h *fixture) publish(goods int64, body []byte) {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), within)
	defer cancel()
	require.NoError(h.t, h.queue.Publish(ctx, goods, body))
}

// lines returns the message of order lines.
func (h *fixture) lines(goods int64, lines ...reservation.OrderLine) []byte {
	h.t.Helper()
	entries := make([][]byte, len(lines))
	for i, l := range lines {
		entries[i] = message.EncodeLine(l)
	}
	return message.EncodeOrders(goods, message.JoinEntries(entries))
}

// numbered returns an order line with the number of an expired path. Redis has no reservation for
// it.
func (h *fixture) numbered(goods, epoch, buyerID int64) reservation.OrderLine {
	sn := h.keys.Issue(goods, fmt.Sprint(buyerID), time.Now().Add(-2*ordersn.PathTTL)).String()
	return reservation.OrderLine{
		OrderSn: sn, BuyerID: fmt.Sprint(buyerID), Quantity: 1, Epoch: epoch,
	}
}

func (h *fixture) deadLetters() []order.DeadLetter {
	h.t.Helper()
	return must.Get(h.store.DeadLetters(h.t.Context(), "", 100))(h.t)
}
