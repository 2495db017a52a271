package catalog

import (
	"sync"
	"sync/atomic"
	"time"

	"flashsale.dev/seckill/internal/seckill"
)

// ViewTTL is the greatest age of a view that a node serves from memory. Returned units, a
// merchant's change or a shut gate reach buyers with at most this delay.
const ViewTTL = 50 * time.Millisecond

// renewAfter is the age from which one caller reads the view again. The others still get the old
// view, so that callers do not wait for Redis in a long rush.
const renewAfter = ViewTTL / 2

// viewCache keeps the last views of sales that many callers read at once. In a rush nearly every
// answer is the same refusal and needs no call to Redis.
//
// It is not a ttlcache.Cache, because it must not load. A caller that reads a sale alone always
// gets the current state, so only a view that a batch of callers shared is kept. One caller renews
// a view before it expires. A view also ends when its clock passes the sale's start or end.
//
// It keeps views of open gates only, one for each sale in Redis. It is safe for concurrent use.
type viewCache struct{ views sync.Map } // goods id -> *cachedView

// cachedView is a view that the cache serves.
type cachedView struct {
	sharedView
	renewing atomic.Bool // one caller reads it again
	served   atomic.Bool // another caller got it after renewAfter
}

// wanted reports whether the view is still in demand when the sale is read again. It is if another
// caller used it after renewAfter, or if the new read began before that age.
func (v *cachedView) wanted(again time.Time) bool {
	return v.served.Load() || again.Sub(v.began) < renewAfter
}

// put keeps a view of an open gate if several callers shared it or the older view is in demand.
// Otherwise it deletes the older view.
func (c *viewCache) put(v sharedView) {
	before, found := c.views.Load(v.GoodsID)
	wanted := v.callers > 1 || found && before.(*cachedView).wanted(v.began)
	switch {
	case v.Gate == seckill.GateOpen && wanted:
		c.views.Store(v.GoodsID, &cachedView{sharedView: v})
	case found:
		c.views.Delete(v.GoodsID)
	}
}

// due reports whether the view must be read again and no other caller does so. With willRead the
// caller is the one who does, and the others get the old view meanwhile.
func (v *cachedView) due(willRead bool) bool {
	if willRead {
		return v.renewing.CompareAndSwap(false, true)
	}
	return !v.renewing.Load()
}

// get returns a cached view with its clock advanced by its age. It returns false if the view is too
// old or if the caller has to renew it. It also returns false if the advanced clock changes the
// sale's phase, so that a cached view never delays a start. willRead means that the caller reads
// the sale when get returns false.
func (c *viewCache) get(goodsID int64, willRead bool) (sharedView, bool) {
	found, ok := c.views.Load(goodsID)
	if !ok {
		return sharedView{}, false
	}
	cached := found.(*cachedView)
	age := time.Since(cached.began)
	if age > ViewTTL || age > renewAfter && cached.due(willRead) {
		return sharedView{}, false
	}
	if age > renewAfter && !cached.served.Load() {
		cached.served.Store(true)
	}
	v := cached.sharedView
	// Redis read its clock after began and truncated it, so this is at least Redis' clock now.
	v.Now = v.Now.Add(age + time.Millisecond)
	return v, v.PhaseAt(v.Now, v.Available) == cached.PhaseAt(cached.Now, cached.Available)
}
