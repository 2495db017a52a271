package httpapi_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/salechange"
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
	admit   error             // what Admit says beside the sale's own errors
	ready   bool
	inPlace func() // run inside Place
	keys    map[string]savedKey
	trail   []salechange.AuditEntry
	reads   int // pages of a goods' orders
}

func newFake(now time.Time) *fake {
	return &fake{now: now, sales: map[int64]seckill.Sale{}, orders: map[string]order.Order{}, paths: map[string]string{}, keys: map[string]savedKey{}, ready: true}
}

func (f *fake) sale(by seckill.Actor, id int64) (seckill.Sale, error) {
	s, ok := f.sales[id]
	if !ok {
		return s, seckill.NewError(seckill.NotFound, "there is no such sale")
	}
	if !by.MayManage(s.MerchantID) {
		return s, seckill.NewError(seckill.Forbidden, "this is somebody else's sale")
	}
	return s, nil
}

func (f *fake) Create(_ context.Context, by seckill.Actor, n seckill.NewSale, once salechange.IdempotencyKey) (seckill.Sale, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s, known, err := f.before(once); known {
		return s, err
	}
	s := n.Draft(by.ID, f.now)
	f.sales[s.GoodsID] = s
	f.remember(once, s.GoodsID, by, salechange.ActCreate)
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
		return s, seckill.NewError(seckill.Conflict, "the sale is closed")
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
		return seckill.View{}, seckill.NewError(seckill.NotFound, "there is no such sale")
	}
	return f.view(s), nil
}

// Refused knows nothing by heart.
func (f *fake) KnownError(int64) error { return nil }

func (f *fake) Admit(ctx context.Context, id int64) (seckill.View, error) {
	v, err := f.Sale(ctx, id)
	if err != nil {
		return v, err
	}
	if f.admit != nil {
		return v, f.admit
	}
	return v, v.CheckSelling(v.Now, v.Available)
}

func (f *fake) IssuePath(v seckill.View, buyer int64) (string, time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	path := strings.Repeat("a", 28) + string("0123456789abcdef"[len(f.paths)%16]) + "bcd"
	f.paths[pathKey(v.GoodsID, buyer, path)] = ""
	f.writes++
	return path, f.now.Add(time.Minute)
}

func pathKey(goods, buyer int64, path string) string {
	return fmt.Sprintf("%d/%d/%s", goods, buyer, path)
}

func (f *fake) Ready(context.Context) (bool, map[string]string) {
	return f.ready, map[string]string{"redis": "ok", "rabbitmq": "down"}
}

func (f *fake) changes() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.writes
}
