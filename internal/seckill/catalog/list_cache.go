package catalog

import (
	"context"
	"time"

	"flashsale.dev/seckill/internal/apierror"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/ttlcache"
)

// listTTL is the age at which a page of the list is read again. Callers that share a slow read
// may get an older one.
const listTTL = time.Second

// pageSize is the size of the cached pages, and maxPages bounds them.
const (
	pageSize = 100
	maxPages = 256
)

// Listing lists exposed sales, newest first: at most limit of those below a goods id (0: from the
// top).
type Listing func(ctx context.Context, below int64, limit int) ([]seckill.View, error)

// ListCache keeps pages of the public list in a node's memory, so that any number of visitors
// costs one read per page and second. Callers choose cursors and sizes, so those do not begin a
// page: the first page begins at the top, and each other one at the end of the page before. It is
// safe for concurrent use.
type ListCache struct {
	list  Listing
	now   func() time.Time
	pages *ttlcache.Cache[int64, cachedPage] // by the goods id that they are below
}

type cachedPage struct {
	began time.Time // this node's clock before the list was read
	views []seckill.View
}

// last is the goods id at which the page ends; 0 for the last page.
func (p cachedPage) last() int64 {
	if len(p.views) < pageSize {
		return 0
	}
	return p.views[pageSize-1].GoodsID
}

// NewListCache returns an empty cache of a list, as of Catalog.Sales. Ages count by the clock now.
func NewListCache(list Listing, now func() time.Time) *ListCache {
	pages := ttlcache.New[int64, cachedPage](ttlcache.Options{
		TTL: listTTL, MaxEntries: maxPages, LoadTimeout: readDeadline, Now: now,
	})
	return &ListCache{list: list, now: now, pages: pages}
}

// Sales lists the exposed sales that selects accepts (nil: all), newest first: at most limit of
// those below a goods id (0: from the top). It adds a page's age to each view's Now, so that a
// countdown does not jump when the page is read again.
func (c *ListCache) Sales(
	ctx context.Context, selects func(seckill.View) bool, below int64, limit int,
) (found []seckill.View, err error) {
	for from := int64(0); ; {
		page, err := c.page(ctx, from)
		if err != nil {
			return nil, apierror.OrUnavailable(err, "the sales can't be listed in time")
		}
		age := max(0, c.now().Sub(page.began))
		for i := 0; i < len(page.views) && len(found) < limit; i++ {
			if below > 0 && page.views[i].GoodsID >= below {
				continue
			}
			v := page.views[i]
			v.Now = v.Now.Add(age).Truncate(time.Millisecond)
			if selects == nil || selects(v) {
				found = append(found, v)
			}
		}
		if from = page.last(); from == 0 || len(found) == limit {
			return found, nil
		}
	}
}

// page returns the page of sales below a goods id.
func (c *ListCache) page(ctx context.Context, below int64) (cachedPage, error) {
	return c.pages.Get(ctx, below, func(ctx context.Context) (cachedPage, error) {
		began := c.now()
		views, err := c.list(ctx, below, pageSize)
		return cachedPage{began, views}, err
	})
}
