package catalog

import (
	"context"
	"sync"
	"time"

	"flashsale.dev/seckill/internal/seckill"
)

// Lister lists exposed sales; Shop is one.
type Lister interface {
	Sales(ctx context.Context, below int64, limit int) ([]seckill.View, error)
}

// ListCache keeps what is shown to everybody in a node's memory, so that it may be asked as often as anybody likes: what it
// shows is at most ListTTL old, and whoever asks for the same page meanwhile waits for one look.
type ListCache struct {
	lister Lister
	now    func() time.Time
	mu     sync.Mutex
	pages  map[pageKey]*cachedPage
}

// ListTTL is how old a page may be when it is shown.
const ListTTL = time.Second

// maxPages is how many pages are kept: callers choose cursors and sizes, and must not fill the memory.
const maxPages = 256

type pageKey struct {
	below int64
	limit int
}

// cachedPage is one look, under way or done.
type cachedPage struct {
	began time.Time
	done  chan struct{}
	views []seckill.View
	err   error
}

// NewListCache makes an empty board. now is time.Now but in tests.
func NewListCache(lister Lister, now func() time.Time) *ListCache {
	return &ListCache{lister: lister, now: now, pages: make(map[pageKey]*cachedPage)}
}

// SaleService lists exposed sales as Lister does. The clock of what is shown goes on: each view's Now is this moment's.
func (b *ListCache) Sales(ctx context.Context, below int64, limit int) ([]seckill.View, error) {
	p := b.page(ctx, pageKey{below, limit})
	select {
	case <-p.done:
	case <-ctx.Done():
		return nil, seckill.NewUnavailable("the sales can't be listed in time", context.Cause(ctx))
	}
	if p.err != nil {
		return nil, p.err
	}
	age := b.now().Sub(p.began)
	views := make([]seckill.View, len(p.views))
	for i, v := range p.views {
		v.Now = v.Now.Add(max(0, age)).Truncate(time.Millisecond)
		views[i] = v
	}
	return views, nil
}

// page finds a look that is young enough, or begins one.
func (b *ListCache) page(ctx context.Context, key pageKey) *cachedPage {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	if p := b.pages[key]; p != nil && now.Sub(p.began) < ListTTL && !p.failed() {
		return p
	}
	p := &cachedPage{began: now, done: make(chan struct{})}
	if b.sweep(now); len(b.pages) < maxPages {
		b.pages[key] = p
	}
	go b.load(context.WithoutCancel(ctx), key, p) // others wait for it, whether this caller does or not
	return p
}

func (b *ListCache) load(ctx context.Context, key pageKey, p *cachedPage) {
	ctx, cancel := context.WithTimeout(ctx, readDeadline)
	defer cancel()
	defer close(p.done)
	p.views, p.err = b.lister.Sales(ctx, key.below, key.limit)
}

// failed tells whether a look is over and brought nothing: the next caller looks again.
func (p *cachedPage) failed() bool {
	select {
	case <-p.done:
		return p.err != nil
	default:
		return false
	}
}

// sweep drops what is too old to be shown.
func (b *ListCache) sweep(now time.Time) {
	for key, p := range b.pages {
		if now.Sub(p.began) >= ListTTL {
			delete(b.pages, key)
		}
	}
}
