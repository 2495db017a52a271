package catalog

import (
	"context"
	"time"

	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/ttlcache"
)

// listTTL is the age at which a page of the list is read again. Callers that share a slow read
// may get an older one.
const listTTL = time.Second

// maxPages bounds the cached pages, because callers choose cursors and page sizes.
const maxPages = 256

// Listing lists exposed sales, newest first: at most limit of those below a goods id (0: from the
// top).
type Listing func(ctx context.Context, below int64, limit int) ([]seckill.View, error)

// ListCache keeps pages of the public list in a node's memory, so that any number of visitors
// costs one read per page and second. It is safe for concurrent use.
type ListCache struct {
	list  Listing
	now   func() time.Time
	pages *ttlcache.Cache[pageKey, cachedPage]
}

type pageKey struct {
	below int64
	limit int
}

type cachedPage struct {
	began time.Time // this node's clock before the list was read
	views []seckill.View
}

// NewListCache returns an empty cache of a list, as of Catalog.Sales. Ages count by the clock now.
func NewListCache(list Listing, now func() time.Time) *ListCache {
	pages := ttlcache.New[pageKey, cachedPage](ttlcache.Options{
		TTL: listTTL, MaxEntries: maxPages, LoadTimeout: readDeadline, Now: now,
	})
	return &ListCache{list: list, now: now, pages: pages}
}

// Sales lists exposed sales, as the cached list does. It adds a page's age to each view's Now, so
// that a countdown does not jump when the page is read again.
func (c *ListCache) Sales(ctx context.Context, below int64, limit int) ([]seckill.View, error) {
	load := func(ctx context.Context) (cachedPage, error) {
		began := c.now()
		views, err := c.list(ctx, below, limit)
		return cachedPage{began, views}, err
	}
	page, err := c.pages.Get(ctx, pageKey{below, limit}, load)
	if err != nil {
		return nil, seckill.OrUnavailable(err, "the sales can't be listed in time")
	}
	age := max(0, c.now().Sub(page.began))
	views := make([]seckill.View, len(page.views))
	for i, v := range page.views {
		v.Now = v.Now.Add(age).Truncate(time.Millisecond)
		views[i] = v
	}
	return views, nil
}
