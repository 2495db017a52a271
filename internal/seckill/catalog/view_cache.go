package catalog

import (
	"sync"
	"sync/atomic"
	"time"

	"flashsale.dev/seckill/internal/seckill"
)

// ViewTTL is how long a node goes on telling many buyers what it has seen of a sale: so much later, at worst, do they hear
// of units that came back, of a change by the merchant, or of a gate that was shut.
const ViewTTL = 50 * time.Millisecond

// renewAfter is the age from which on a look is renewed, by one asker while the others are still told it: so that in a long
// rush nobody waits for Redis.
const renewAfter = ViewTTL / 2

// viewCache is what a node has just seen of the sales that many look at. In a rush nearly every answer is the same no, and
// need not ask Redis for it.
//
// Who asks alone is told how things stand, always: only a look that was shared shows that there is a rush, and only such a
// sharedView is kept. Only what a script has said of an open sale is kept; there is one entry for each sale that Redis has. It is
// safe for concurrent use.
type viewCache struct{ views sync.Map } // goods id -> *kept

// cachedView is a look that is told to others.
type cachedView struct {
	sharedView
	renewing atomic.Bool // somebody is looking again
	served   atomic.Bool // and somebody else has been told this one since
}

// wanted tells whether others than the one who looked again, from that time on, ask for the sale.
func (k *cachedView) wanted(again time.Time) bool {
	return k.served.Load() || again.Sub(k.began) < renewAfter
}

// keep remembers a look, if it is one that may be told to others and others ask.
func (r *viewCache) put(l sharedView) {
	before, found := r.views.Load(l.GoodsID)
	switch {
	case l.Gate == seckill.GateOpen && (l.callers > 1 || found && before.(*cachedView).wanted(l.began)):
		r.views.Store(l.GoodsID, &cachedView{sharedView: l})
	case found:
		r.views.Delete(l.GoodsID)
	}
}

func (r *viewCache) remove(goodsID int64) { r.views.Delete(goodsID) }

// due tells whether it is the asker's turn to renew it. Who will look takes the turn; others only ask.
func (k *cachedView) due(takes bool) bool {
	if takes {
		return k.renewing.CompareAndSwap(false, true)
	}
	return !k.renewing.Load()
}

// recall gives a remembered view with its clock moved on, or false where one must look again: it is too old, or it is the
// asker's turn to renew it, or the clock has passed the sale's opening or its end since, for a sale opens when it opens and
// not a moment later. willLook says that the asker will look where it must.
func (r *viewCache) get(goodsID int64, willLook bool) (sharedView, bool) {
	found, ok := r.views.Load(goodsID)
	if !ok {
		return sharedView{}, false
	}
	k := found.(*cachedView)
	age := time.Since(k.began)
	if age > ViewTTL || age > renewAfter && k.due(willLook) {
		return sharedView{}, false
	}
	if age > renewAfter && !k.served.Load() {
		k.served.Store(true)
	}
	l := k.sharedView
	l.Now = l.Now.Add(age + time.Millisecond) // at least Redis' clock: it was read after the look began, and cut to the millisecond
	return l, l.PhaseAt(l.Now, l.Available) == k.PhaseAt(k.Now, k.Available)
}
