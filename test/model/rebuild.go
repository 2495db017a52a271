package model

import (
	"maps"
	"slices"
)

func sorted[V any](m map[int]V) []int { return slices.Sorted(maps.Keys(m)) }

// putUp is a merchant, who asks until the sale is exposed.
func (w *world) putUp(goods int) {
	if w.db.goods[goods].epoch > 0 {
		return
	}
	if h := pick(w.rnd, w.apis); h.alive {
		w.spawn(h, 0, func(p *proc) { w.expose(p, goods) })
	}
	w.later(20, func() { w.putUp(goods) })
}

// expose is Opener.OpenFirst.
func (w *world) expose(p *proc, goods int) {
	p.step()
	snap, ok := w.db.beginEpoch(goods, 0)
	if !ok {
		return
	}
	w.say("%s exposes goods %d", p.host.name, goods)
	p.sleep(w.rnd.IntN(12))
	p.host.redis.load(goods, snap)
}

// watch is Rebuilder.Run.
func (w *world) watch(p *proc) {
	for {
		p.round(4)
		for g := range w.nGoods {
			if w.lost(p.host, g) {
				w.rebuild(p, g)
			}
		}
	}
}

// lost is Rebuilder.lost.
func (w *world) lost(h *host, goods int) bool {
	epoch := w.db.goods[goods].epoch
	if epoch == 0 || !w.db.up {
		return false
	}
	g, k := h.redis.gateOf(goods, false)
	switch g {
	case missing, leaseGone, shut:
		return true
	case open:
		return k.epoch < epoch
	}
	return false
}

// rebuild is Rebuilder.Rebuild.
func (w *world) rebuild(p *proc, goods int) {
	p.step()
	holder := w.id()
	if w.db.goods[goods].epoch == 0 || !p.host.redis.tryLock(goods, holder, lockLife) {
		return
	}
	if w.rebuildLocked(p, goods) {
		w.say("%s rebuilt goods %d", p.host.name, goods)
	}
	p.step()
	p.host.redis.unlock(goods, holder)
}

func (w *world) rebuildLocked(p *proc, goods int) bool {
	p.step()
	if !w.db.up {
		return false
	}
	token := w.db.nextToken(goods)
	p.step()
	if !w.db.up {
		return false
	}
	epoch := w.db.goods[goods].epoch
	p.step()
	s := p.host.redis
	if !s.answers() {
		return false
	}
	s.shutFor(goods, epoch)
	w.say("%s shuts goods %d for a rebuild, token %d", p.host.name, goods, token)
	if !w.drain(p, goods, token) {
		w.say("%s gives its rebuild of goods %d up", p.host.name, goods)
		return false
	}
	p.step()
	if !w.db.up {
		return false
	}
	snap, ok := w.db.beginEpoch(goods, token)
	if !ok {
		return false
	}
	w.say("%s begins epoch %d of goods %d: %d of %d left", p.host.name, snap.epoch, goods, snap.stock, snap.total)
	p.sleep(w.rnd.IntN(12)) // many buyers take time to stage
	s = p.host.redis
	return s.load(goods, snap)
}

// drain is Rebuilder.drain.
func (w *world) drain(p *proc, goods, token int) bool {
	if !w.off(BarrierAfterDeadline) {
		p.sleep(publishDeadline)
	}
	if !w.drainOutbox(p, goods, 0) {
		return false
	}
	if !w.off(FeedBeforeBarrier) && !w.feed(p, goods, -1) {
		return false
	}
	switch {
	case w.off(Barrier):
		return true
	case w.off(BarrierThroughQueue):
		return w.emptyQueue(p, goods)
	}
	return w.passBarrier(p, goods, token)
}

func (w *world) passBarrier(p *proc, goods, token int) bool {
	epoch := w.db.goods[goods].epoch
	by := w.now + barrierPatience
	if w.publish(p, goods, message{barrier: true, goods: goods, epoch: epoch, token: token}, by) != confirmed {
		return false
	}
	for w.now < by {
		p.sleep(1 + w.rnd.IntN(2))
		if w.db.up && w.db.barriers[[2]int{goods, token}] {
			return true
		}
	}
	return false
}

func (w *world) emptyQueue(p *proc, goods int) bool {
	for by := w.now + barrierPatience; w.now < by; p.sleep(1) {
		if q := w.queueOf(goods); !q.gone && len(q.ready) == 0 {
			return true
		}
	}
	return false
}
