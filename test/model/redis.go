package model

import (
	"maps"
	"slices"
)

// line is one order on its way. Two lines with the same number are the same order.
type line struct {
	sn, goods, buyer, q, epoch, path int
	bad                              bool // MySQL will never take it
}

type gate int

// scripts/lua/gate.lua has the same codes.
const (
	open gate = iota
	missing
	shut
	leaseGone
	otherEpoch
	away // Redis does not answer: the outcome is unknown
)

type held struct{ sn, q int }

type pend struct {
	line
	at int
}

type entry struct {
	id, at int
	lines  []line
}

type permit struct{ buyer, epoch, sn int }

// keys is what Redis holds of one goods.
type keys struct {
	loaded                          bool
	shut                            bool
	epoch, lease, fence             int
	avail, pend, sold, total, until int
	buyers                          map[int][]held
	pending                         map[int]pend
	outbox                          []entry
	moves                           map[int]bool
	paths                           map[int]permit
	lock, lockUntil                 int
}

func (k *keys) clone() *keys {
	c := *k
	c.buyers = make(map[int][]held, len(k.buyers))
	for b, h := range k.buyers {
		c.buyers[b] = slices.Clone(h)
	}
	c.pending, c.moves, c.paths = maps.Clone(k.pending), maps.Clone(k.moves), maps.Clone(k.paths)
	c.outbox = slices.Clone(k.outbox)
	return &c
}

func newKeys() *keys {
	return &keys{buyers: map[int][]held{}, pending: map[int]pend{}, moves: map[int]bool{}, paths: map[int]permit{}}
}

type state struct {
	goods   []*keys
	counter int // for numbers by INCR
	scripts bool
}

func (s state) clone() state {
	c := state{counter: s.counter, scripts: s.scripts}
	for _, k := range s.goods {
		c.goods = append(c.goods, k.clone())
	}
	return c
}

// server is one Redis: its memory, and what it was some writes ago, for a replica or an AOF that lags.
type server struct {
	w *world
	state
	replid  int
	up      bool
	demoted bool // a replica by now: refuses writes
	history []state
}

func (w *world) newServer() *server {
	s := &server{w: w, replid: w.id(), up: true}
	s.empty()
	return s
}

func (s *server) empty() {
	s.goods = nil
	for range s.w.nGoods {
		s.goods = append(s.goods, newKeys())
	}
	s.history = nil
}

// writing is called before each change. Only schedules that will need the past remember it.
func (s *server) writing() {
	s.w.dirty = true
	if !s.w.remember {
		return
	}
	if len(s.history) >= 12 {
		s.history = s.history[1:]
	}
	s.history = append(s.history, s.clone())
}

// past is the state some writes ago, at most as many as are remembered.
func (s *server) past(writes int) state {
	if writes = min(writes, len(s.history)); writes == 0 {
		return s.clone()
	}
	return s.history[len(s.history)-writes].clone()
}

func (s *server) answers() bool { return s.up && !s.demoted }

// gateOf is gate.lua; old is a release of the script that does not know the lease.
func (s *server) gateOf(goods int, old bool) (gate, *keys) {
	k := s.goods[goods]
	switch {
	case !s.answers():
		return away, k
	case !k.loaded:
		return missing, k
	case k.shut:
		return shut, k
	case old && s.w.off(LeaseInEveryRelease), s.w.off(LeaseCheck):
		return open, k
	case s.w.off(LeaseOfEachSale):
		if !s.scripts {
			return leaseGone, k
		}
	case k.lease != s.replid:
		return leaseGone, k
	}
	return open, k
}

func (k *keys) held(buyer int) int {
	n := 0
	for _, h := range k.buyers[buyer] {
		n += h.q
	}
	return n
}

func (k *keys) letGo(buyer, sn int) {
	rest := slices.DeleteFunc(k.buyers[buyer], func(h held) bool { return h.sn == sn })
	if k.buyers[buyer] = rest; len(rest) == 0 {
		delete(k.buyers, buyer)
	}
}

func (k *keys) take(l line, now int) {
	k.avail, k.pend = k.avail-l.q, k.pend+l.q
	k.buyers[l.buyer] = append(k.buyers[l.buyer], held{l.sn, l.q})
	k.pending[l.sn] = pend{l, now}
}

// settle is settle.lua.
func (s *server) settle(goods int, sns []int) bool {
	if !s.answers() {
		return false
	}
	k := s.goods[goods]
	for _, sn := range sns {
		p, ok := k.pending[sn]
		if !ok {
			continue
		}
		s.writing()
		delete(k.pending, sn)
		k.pend, k.sold = k.pend-p.q, k.sold+p.q
	}
	return true
}

// adopt is adopt.lua. Behind a shut gate nothing is taken: what is loaded next has these orders in it, or is fenced off.
func (s *server) adopt(goods, epoch int, lines []line) (map[int]bool, gate) {
	g, k := s.gateOf(goods, false)
	if g == away || k.loaded && k.epoch > epoch {
		return nil, max(g, otherEpoch)
	}
	took := make(map[int]bool)
	s.writing()
	if g != open || k.epoch < epoch {
		if k.epoch < epoch && !s.w.off(AdoptFences) {
			k.fence = epoch
		}
		k.shut = k.loaded
		s.w.book.letGo(s.w, s, goods)
		for _, l := range lines {
			took[l.sn] = true
		}
		return took, shut
	}
	for _, l := range lines {
		_, pending := k.pending[l.sn]
		known := slices.ContainsFunc(k.buyers[l.buyer], func(h held) bool { return h.sn == l.sn })
		over := k.held(l.buyer)+l.q > s.w.limit[goods] && !s.w.off(AdoptWithinLimit)
		if took[l.sn] = pending || known; !took[l.sn] && !over && l.q <= k.avail {
			k.take(l, s.w.now)
			took[l.sn] = true
		}
	}
	return took, open
}

type given int

const (
	givenNow given = iota
	givenBefore
	covered
	givenLater
)

// release is release.lua, for one move.
func (s *server) release(m *move) given {
	if !s.answers() {
		return givenLater
	}
	g, k := s.gateOf(m.goods, false)
	if g != open && !s.w.off(ReleaseUnderLease) {
		return givenLater
	}
	if !s.w.off(ReleaseByEpoch) {
		if k.epoch < m.epoch {
			return givenLater
		}
		if k.epoch > m.epoch {
			return covered
		}
	} else if !k.loaded {
		return givenLater
	}
	if k.moves[m.id] && !s.w.off(ReleaseByID) {
		return givenBefore
	}
	s.writing()
	k.moves[m.id] = true
	p, pending := k.pending[m.sn]
	if pending {
		delete(k.pending, m.sn)
		k.pend -= p.q
	} else if m.fail {
		return givenNow
	} else {
		k.sold -= m.q
	}
	k.avail += m.q
	if !s.w.off(ReleaseWithHolding) {
		k.letGo(m.buyer, m.sn)
	}
	return givenNow
}

// shutFor is shut.lua: whatever epoch MySQL has begun by now must not be loaded any more.
func (s *server) shutFor(goods, epoch int) {
	k := s.goods[goods]
	s.writing()
	k.fence, k.shut = max(k.fence, epoch), k.loaded
}

// load is load.lua.
func (s *server) load(goods int, snap snapshot) bool {
	k := s.goods[goods]
	newest := 0
	if k.loaded {
		newest = k.epoch
	}
	if !s.w.off(LoadFenced) && !s.w.off(FencingToken) {
		newest = max(newest, k.fence)
	}
	if !s.answers() || newest >= snap.epoch && !s.w.off(EpochInLoad) {
		return false
	}
	if g, _ := s.gateOf(goods, false); g == open && !s.w.off(LoadBehindGate) {
		return false // opened on another master than the one that the rebuild shut
	}
	s.writing()
	s.scripts = true
	k.loaded, k.shut, k.epoch, k.lease = true, false, snap.epoch, s.replid
	k.avail, k.pend, k.sold, k.total = snap.stock, 0, snap.total-snap.stock, snap.total
	k.until = s.w.saleEnd
	k.pending, k.moves, k.buyers = map[int]pend{}, map[int]bool{}, map[int][]held{}
	if s.w.off(HoldingsInDB) {
		return true
	}
	for _, o := range snap.active {
		k.buyers[o.buyer] = append(k.buyers[o.buyer], held{o.sn, o.q})
	}
	return true
}

// tryLock is SET NX PX.
func (s *server) tryLock(goods, holder, life int) bool {
	k := s.goods[goods]
	if !s.answers() || k.lock != 0 && k.lockUntil > s.w.now {
		return false
	}
	s.writing()
	k.lock, k.lockUntil = holder, s.w.now+life
	return true
}

func (s *server) unlock(goods, holder int) {
	if k := s.goods[goods]; s.answers() && k.lock == holder {
		k.lock = 0
	}
}
