package httpapi_test

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/auth"
	"flashsale.dev/seckill/internal/httpapi"
	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/seckill"
)

// fake is every service at once, in memory, with the manners of the real ones: NOT_FOUND before FORBIDDEN.
type fake struct {
	mu      sync.Mutex
	now     time.Time
	sales   map[int64]seckill.Sale
	orders  map[string]order.Order
	paths   map[string]string // "goods/buyer/path" → order number, "" while unused
	writes  int               // calls that changed something
	limit   error             // what LimitPath says
	wait    time.Duration     // how long it waits
	admit   error             // what Admit says beside the sale's own refusals
	ready   bool
	inPlace func() // run inside Place
}

func newFake(now time.Time) *fake {
	return &fake{now: now, sales: map[int64]seckill.Sale{}, orders: map[string]order.Order{}, paths: map[string]string{}, ready: true}
}

func (f *fake) sale(by seckill.Actor, id int64) (seckill.Sale, error) {
	s, ok := f.sales[id]
	if !ok {
		return s, seckill.Refuse(seckill.NotFound, "there is no such sale")
	}
	if !by.MayManage(s.MerchantID) {
		return s, seckill.Refuse(seckill.Forbidden, "this is somebody else's sale")
	}
	return s, nil
}

func (f *fake) Create(_ context.Context, by seckill.Actor, n seckill.NewSale) (seckill.Sale, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := n.Draft(by.ID, f.now)
	f.sales[s.GoodsID] = s
	f.writes++
	return s, nil
}

func (f *fake) Get(_ context.Context, by seckill.Actor, id int64) (seckill.Sale, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.sale(by, id)
}

func (f *fake) List(_ context.Context, by seckill.Actor, below int64, limit int) ([]seckill.Sale, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []seckill.Sale
	for _, id := range slices.Backward(slices.Sorted(maps.Keys(f.sales))) {
		if s := f.sales[id]; (below == 0 || id < below) && by.MayManage(s.MerchantID) && len(out) < limit {
			out = append(out, s)
		}
	}
	return out, nil
}

func (f *fake) become(by seckill.Actor, id int64, st seckill.Status) (seckill.Sale, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s, err := f.sale(by, id)
	if err != nil {
		return s, err
	}
	if st == seckill.Exposed && s.Status == seckill.Closed {
		return s, seckill.Refuse(seckill.Conflict, "the sale is closed")
	}
	s.Status = st
	f.sales[id] = s
	f.writes++
	return s, nil
}

func (f *fake) Expose(_ context.Context, by seckill.Actor, id int64) (seckill.Sale, error) {
	return f.become(by, id, seckill.Exposed)
}

func (f *fake) Close(_ context.Context, by seckill.Actor, id int64) (seckill.Sale, error) {
	return f.become(by, id, seckill.Closed)
}

func (f *fake) Ledger(_ context.Context, by seckill.Actor, id int64) (seckill.Ledger, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s, err := f.sale(by, id)
	return seckill.Ledger{Total: s.Total, Available: s.Stock, Sold: s.Total - s.Stock, Balanced: true, Epoch: 1}, err
}

func (f *fake) view(s seckill.Sale) seckill.View {
	return seckill.View{Sale: s, Available: s.Stock, Now: f.now}
}

func (f *fake) Sales(_ context.Context, below int64, limit int) ([]seckill.View, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []seckill.View
	for _, id := range slices.Backward(slices.Sorted(maps.Keys(f.sales))) {
		if s := f.sales[id]; (below == 0 || id < below) && s.Status == seckill.Exposed && len(out) < limit {
			out = append(out, f.view(s))
		}
	}
	return out, nil
}

func (f *fake) Sale(_ context.Context, id int64) (seckill.View, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s, ok := f.sales[id]
	if !ok || s.Status == seckill.Draft {
		return seckill.View{}, seckill.Refuse(seckill.NotFound, "there is no such sale")
	}
	return f.view(s), nil
}

func (f *fake) Admit(ctx context.Context, id int64) (seckill.View, error) {
	v, err := f.Sale(ctx, id)
	if err != nil {
		return v, err
	}
	if f.admit != nil {
		return v, f.admit
	}
	return v, v.Refusal(v.Now, v.Available)
}

func (f *fake) IssuePath(_ context.Context, v seckill.View, buyer int64) (string, time.Time, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	path := strings.Repeat("a", 28) + string("0123456789abcdef"[len(f.paths)%16]) + "bcd"
	f.paths[pathKey(v.GoodsID, buyer, path)] = ""
	f.writes++
	return path, f.now.Add(time.Minute), nil
}

func pathKey(goods, buyer int64, path string) string {
	return fmt.Sprintf("%d/%d/%s", goods, buyer, path)
}

func (f *fake) LimitPath(ctx context.Context, _ seckill.View, _ seckill.Actor) error {
	if f.wait > 0 {
		select {
		case <-time.After(f.wait):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return f.limit
}

func (f *fake) Place(ctx context.Context, p order.Purchase) (string, error) {
	if f.inPlace != nil {
		f.inPlace()
	}
	v, err := f.Sale(ctx, p.GoodsID)
	if err != nil {
		return "", err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	sn, known := f.paths[pathKey(p.GoodsID, p.Buyer.ID, p.Path)]
	switch {
	case !known:
		return "", seckill.Verdict{Code: seckill.WrongPath}.Err()
	case sn != "":
		return sn, nil
	case p.Quantity > v.Available:
		return "", seckill.Verdict{Code: seckill.TooFew, Available: v.Available}.Err()
	}
	sn = fmt.Sprintf("order-%d", len(f.orders)+1)
	f.paths[pathKey(p.GoodsID, p.Buyer.ID, p.Path)] = sn
	f.orders[sn] = order.Order{
		Line:    seckill.Line{OrderSn: sn, BuyerID: p.Buyer.ID, Quantity: p.Quantity, Name: p.Buyer.Name, Phone: p.Buyer.Phone},
		GoodsID: p.GoodsID, Status: order.Created, Amount: v.Price * p.Quantity, CreatedAt: f.now, PayBy: f.now.Add(time.Hour),
	}
	f.writes++
	return sn, nil
}

func (f *fake) find(by seckill.Actor, sn string) (order.Order, error) {
	o, ok := f.orders[sn]
	if !ok {
		return o, seckill.Refuse(seckill.NotFound, "there is no such order")
	}
	if o.BuyerID != by.ID {
		return o, seckill.Refuse(seckill.Forbidden, "this is somebody else's order")
	}
	return o, nil
}

func (f *fake) Find(_ context.Context, by seckill.Actor, sn string) (order.Order, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.find(by, sn)
}

func (f *fake) some(before string, limit int, want func(order.Order) bool) []order.Order {
	var out []order.Order
	for _, sn := range slices.Backward(slices.Sorted(maps.Keys(f.orders))) {
		if (before == "" || sn < before) && want(f.orders[sn]) && len(out) < limit {
			out = append(out, f.orders[sn])
		}
	}
	return out
}

func (f *fake) Mine(_ context.Context, by seckill.Actor, before string, limit int) ([]order.Order, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.some(before, limit, func(o order.Order) bool { return o.BuyerID == by.ID }), nil
}

func (f *fake) OfGoods(_ context.Context, by seckill.Actor, id int64, st order.Status, before string, limit int) ([]order.Order, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, err := f.sale(by, id); err != nil {
		return nil, err
	}
	return f.some(before, limit, func(o order.Order) bool { return o.GoodsID == id && (st == "" || o.Status == st) }), nil
}

func (f *fake) end(by seckill.Actor, sn string, st order.Status) (order.Order, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	o, err := f.find(by, sn)
	if err != nil {
		return o, err
	}
	if o.Status != order.Created && o.Status != st {
		return o, seckill.Refuse(seckill.Conflict, "the order is %s", o.Status)
	}
	o.Status = st
	f.orders[sn] = o
	f.writes++
	return o, nil
}

func (f *fake) Pay(_ context.Context, by seckill.Actor, sn string) (order.Order, error) {
	return f.end(by, sn, order.Paid)
}

func (f *fake) Cancel(_ context.Context, by seckill.Actor, sn string) (order.Order, error) {
	return f.end(by, sn, order.Cancelled)
}

func (f *fake) Ready(context.Context) (bool, map[string]string) {
	return f.ready, map[string]string{"redis": "ok", "rabbitmq": "down"}
}

func (f *fake) changes() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.writes
}

// heard is a Metrics that remembers what it heard.
type heard struct {
	mu  sync.Mutex
	all []string
}

func (h *heard) Observe(route, reason string, _ time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, route+" "+reason)
}

func (h *heard) last() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.all) == 0 {
		return ""
	}
	return h.all[len(h.all)-1]
}

var secret = []byte("a secret of the tests, of 32 bytes or more")

// house is a running API over the fake.
type house struct {
	*fake
	t       *testing.T
	tokens  *auth.Tokens
	metrics *heard
	log     *strings.Builder
	url     string
	client  *http.Client
}

func open(t *testing.T) *house {
	t.Helper()
	tokens, err := auth.New(secret, 1024, time.Now)
	require.NoError(t, err)
	h := &house{
		fake: newFake(time.Date(2026, 11, 11, 12, 0, 0, 0, time.UTC)), t: t,
		tokens: tokens, metrics: &heard{}, log: &strings.Builder{},
	}
	log := slog.New(slog.NewTextHandler(&lockedWriter{w: h.log}, nil))
	handler := httpapi.New(httpapi.Deps{
		Sales: h, Shop: h, Limiter: h, Desk: h, Orders: h, Cashier: h, Health: h, Tokens: tokens, Metrics: h.metrics, Log: log,
	}, httpapi.Options{Now: func() time.Time { return h.now }})
	srv := httptest.NewUnstartedServer(handler)
	srv.Config = httpapi.Server(handler, "", log)
	srv.Start()
	t.Cleanup(srv.Close)
	h.url, h.client = srv.URL, srv.Client()
	h.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return h
}

type lockedWriter struct {
	mu sync.Mutex
	w  *strings.Builder
}

func (l *lockedWriter) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(b)
}
