package httpapi_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/stats"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/salechange"
)

// Most methods of the fake take these types.
type (
	actor = seckill.Actor
	sale  = seckill.Sale
	key   = salechange.IdempotencyKey
)

// fake implements every service in memory. It reports NOT_FOUND before FORBIDDEN, as the real
// services do.
type fake struct {
	mu      sync.Mutex
	now     time.Time
	sales   map[int64]sale
	orders  map[string]order.Order
	paths   map[string]string // order number by "goods/buyer/path"; "" for an unused path
	writes  int               // calls that changed the state
	limit   error             // what LimitPath returns
	wait    time.Duration     // how long LimitPath waits
	ready   bool
	inPlace func() // Place calls it
	keys    map[string]savedKey
	trail   []salechange.AuditEntry
	reads   int // page reads of a sale's orders
}

// savedKey is the request that used an idempotency key.
type savedKey struct {
	hash string
	sale int64
}

func newFake(now time.Time) *fake {
	return &fake{
		now: now, sales: map[int64]sale{}, orders: map[string]order.Order{},
		paths: map[string]string{}, keys: map[string]savedKey{}, ready: true,
	}
}

// lock locks the fake and returns the function that unlocks it.
func (f *fake) lock() func() {
	f.mu.Lock()
	return f.mu.Unlock
}

// newest returns at most limit values below the given key, largest keys first. It keeps only the
// values that want selects. The zero key starts at the largest key.
func newest[K cmp.Ordered, V any](all map[K]V, below K, limit int, want func(V) bool) (out []V) {
	var start K
	for _, k := range slices.Backward(slices.Sorted(maps.Keys(all))) {
		if (below == start || k < below) && want(all[k]) && len(out) < limit {
			out = append(out, all[k])
		}
	}
	return out
}

func (f *fake) sale(by actor, id int64) (sale, error) {
	s, ok := f.sales[id]
	if !ok {
		return s, seckill.NewError(seckill.NotFound, "there is no such sale")
	}
	if !by.MayManage(s.MerchantID) {
		return s, seckill.NewError(seckill.Forbidden, "this is somebody else's sale")
	}
	return s, nil
}

func (f *fake) Create(_ context.Context, by actor, n seckill.NewSale, once key) (sale, error) {
	defer f.lock()()
	if s, known, err := f.repeated(once); known {
		return s, err
	}
	s := n.Draft(by.ID, f.now)
	f.sales[s.GoodsID] = s
	f.record(once, s.GoodsID, by, salechange.ActCreate)
	return s, nil
}

func (f *fake) Get(_ context.Context, by actor, id int64) (sale, error) {
	defer f.lock()()
	return f.sale(by, id)
}

func (f *fake) List(_ context.Context, by actor, below int64, limit int) ([]sale, error) {
	defer f.lock()()
	own := func(s sale) bool { return by.MayManage(s.MerchantID) }
	return newest(f.sales, below, limit, own), nil
}

func (f *fake) become(by actor, id int64, status seckill.Status) (sale, error) {
	defer f.lock()()
	s, err := f.sale(by, id)
	if err != nil {
		return s, err
	}
	if status == seckill.Exposed && s.Status == seckill.Closed {
		return s, seckill.NewError(seckill.Conflict, "the sale is closed")
	}
	s.Status = status
	f.sales[id] = s
	f.writes++
	return s, nil
}

func (f *fake) Expose(_ context.Context, by actor, id int64) (sale, error) {
	return f.become(by, id, seckill.Exposed)
}

func (f *fake) Close(_ context.Context, by actor, id int64) (sale, error) {
	return f.become(by, id, seckill.Closed)
}

func (f *fake) Ledger(_ context.Context, by actor, id int64) (seckill.Ledger, error) {
	defer f.lock()()
	s, err := f.sale(by, id)
	return seckill.Ledger{
		Total: s.Total, Available: s.Stock, Sold: s.Total - s.Stock, Balanced: true, Epoch: 1,
	}, err
}

// repeated returns the sale that an earlier request with the idempotency key created or changed.
// The caller holds the lock.
func (f *fake) repeated(once key) (s sale, known bool, err error) {
	had, known := f.keys[fmt.Sprint(once.ActorID, once.Key)]
	switch {
	case once.Key == "" || !known:
		return sale{}, false, nil
	case had.hash != once.Hash:
		return sale{}, true, salechange.NewIdempotencyConflict()
	}
	return f.sales[had.sale], true, nil
}

func (f *fake) record(once key, id int64, by actor, what salechange.Action) {
	if once.Key != "" {
		f.keys[fmt.Sprint(once.ActorID, once.Key)] = savedKey{once.Hash, id}
	}
	f.writes++
	f.trail = append(f.trail, salechange.AuditEntry{
		ID: fmt.Sprintf("01a1fc15-9a10-78e6-83a6-%012d", len(f.trail)), GoodsID: id,
		ActorID: by.ID, Role: by.Role, Action: what, At: f.now,
		Was: map[string]any{"price": 1}, Became: map[string]any{"price": 2},
	})
}

func (f *fake) Change(
	_ context.Context, by actor, id int64, c salechange.Change, once key,
) (sale, error) {
	defer f.lock()()
	s, err := f.sale(by, id)
	if err != nil {
		return s, err
	}
	if s, known, err := f.repeated(once); known {
		return s, err
	}
	if s, err = c.Apply(s); err != nil {
		return s, err
	}
	f.sales[id] = s
	f.record(once, id, by, salechange.ActChange)
	return s, nil
}

func (f *fake) Delete(_ context.Context, by actor, id int64, once key) error {
	defer f.lock()()
	if _, known, err := f.repeated(once); known {
		return err
	}
	s, err := f.sale(by, id)
	if err != nil {
		return err
	}
	if s.Status != seckill.Draft {
		return seckill.NewError(seckill.Conflict, "only a draft can be deleted")
	}
	delete(f.sales, id)
	f.record(once, id, by, salechange.ActDelete)
	return nil
}

func (f *fake) Audit(
	_ context.Context, by actor, id int64, before string, limit int,
) ([]salechange.AuditEntry, error) {
	defer f.lock()()
	entries := map[string]salechange.AuditEntry{}
	for _, e := range f.trail {
		entries[e.ID] = e
	}
	_, err := f.sale(by, id)
	of := func(e salechange.AuditEntry) bool { return err == nil && e.GoodsID == id }
	return newest(entries, before, limit, of), err
}

func (f *fake) Statistics(_ context.Context, by actor, id int64) (stats.Statistics, error) {
	defer f.lock()()
	s, err := f.sale(by, id)
	orders := map[order.Status]stats.Count{order.Paid: {Orders: 1, Units: 2, Amount: 3}}
	return stats.Statistics{View: f.view(s), Orders: orders}, err
}

func (f *fake) view(s sale) seckill.View {
	return seckill.View{Sale: s, Available: s.Stock, Now: f.now}
}

func (f *fake) Sales(_ context.Context, below int64, limit int) (views []seckill.View, _ error) {
	defer f.lock()()
	exposed := func(s sale) bool { return s.Status == seckill.Exposed }
	for _, s := range newest(f.sales, below, limit, exposed) {
		views = append(views, f.view(s))
	}
	return views, nil
}

func (f *fake) Sale(_ context.Context, id int64) (seckill.View, error) {
	defer f.lock()()
	s, ok := f.sales[id]
	if !ok || s.Status == seckill.Draft {
		return seckill.View{}, seckill.NewError(seckill.NotFound, "there is no such sale")
	}
	return f.view(s), nil
}

// KnownError returns nil, because the fake has no cache.
func (f *fake) KnownError(int64) error { return nil }

func (f *fake) Admit(ctx context.Context, id int64) (seckill.View, error) {
	v, err := f.Sale(ctx, id)
	if err == nil {
		err = v.CheckSelling(v.Now, v.Available)
	}
	return v, err
}

func (f *fake) IssuePath(v seckill.View, id int64) (string, time.Time) {
	defer f.lock()()
	path := strings.Repeat("a", 28) + string("0123456789abcdef"[len(f.paths)%16]) + "bcd"
	f.paths[pathKey(v.GoodsID, id, path)] = ""
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
	defer f.lock()()
	return f.writes
}
