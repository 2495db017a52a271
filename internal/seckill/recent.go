package seckill

import (
	"sync"
	"time"
)

// Moment is how long a node goes on telling many buyers what it has seen of a sale: so much later, at worst, do they hear
// of units that came back, of a change by the merchant, or of a gate that was shut.
const Moment = 50 * time.Millisecond

// recent is what a node has just seen of the sales that many look at. In a rush nearly every answer is the same no, and
// need not ask Redis for it.
//
// Who asks alone is told how things stand, always: only a look that was shared shows that there is a rush, and only such a
// look is kept. Only what a script has said of an open sale is kept; there is one entry for each sale that Redis has. It is safe
// for concurrent use.
type recent struct{ looks sync.Map } // goods id -> *look

// keep remembers a look, if it is one that may be told to others.
func (r *recent) keep(l look) {
	if l.company > 1 && l.Gate == GateOpen {
		r.looks.Store(l.GoodsID, &l)
	}
}

func (r *recent) forget(goodsID int64) { r.looks.Delete(goodsID) }

// recall gives a remembered view with its clock moved on, or false where it is too old or the clock has passed the sale's
// opening or its end since: a sale opens when it opens, not a moment later.
func (r *recent) recall(goodsID int64) (View, bool) {
	kept, found := r.looks.Load(goodsID)
	if !found {
		return View{}, false
	}
	l := kept.(*look)
	age := time.Since(l.began)
	if age > Moment {
		return View{}, false
	}
	v := l.View
	v.Now = v.Now.Add(age + time.Millisecond) // at least Redis' clock: it was read after the look began, and cut to the millisecond
	return v, v.PhaseAt(v.Now, v.Available) == l.PhaseAt(l.Now, l.Available)
}
