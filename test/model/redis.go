package model

import (
	"maps"
	"slices"
)

// line is one order in a message. Two lines with the same number are the same order. The number is
// the random path, issued at the tick issued.
type line struct {
	sn, goods, buyer, q, epoch, issued int
	bad                                bool // MySQL rejects it
}

// gate is the result of the gate check, with which every script begins.
type gate int

// The codes are those of scripts/lua/gate.lua.
const (
	open gate = iota
	missing
	shut
	leaseGone
	otherEpoch
	openingOver // MySQL's opening was not renewed
	unavailable // Redis does not answer: the outcome is unknown
)

// held is one order of a buyer and its quantity, which is 0 once the order has ended. The number
// has the tick at which its path was issued.
type held struct{ sn, q, issued int }

// pendingOrder is an order whose commit in MySQL is not confirmed, since the tick at.
type pendingOrder struct {
	line
	at int
}

// entry is one entry of the outbox: the orders of one reserve script.
type entry struct {
	id, at int
	lines  []line
}

// keys are the keys of one goods in Redis.
type keys struct {
	loaded, shut bool
	// ready: loaded, and to be opened once MySQL has recorded the opening. openUntil is its end by
	// this Redis' clock.
	ready                           bool
	openUntil                       int
	epoch, lease, fence             int
	avail, pend, sold, total, until int
	// buyers has the orders of each buyer in this epoch.
	buyers  map[int][]held
	pending map[int]pendingOrder
	outbox  []entry
	// moves has the ids of the stock moves that this epoch has applied.
	moves           map[int]bool
	lock, lockUntil int
}

func (k *keys) clone() *keys {
	c := *k
	c.buyers = make(map[int][]held, len(k.buyers))
	for b, h := range k.buyers {
		c.buyers[b] = slices.Clone(h)
	}
	c.pending, c.moves = maps.Clone(k.pending), maps.Clone(k.moves)
	c.outbox = slices.Clone(k.outbox)
	return &c
}

func newKeys() *keys {
	return &keys{
		buyers: map[int][]held{}, pending: map[int]pendingOrder{},
		moves: map[int]bool{},
	}
}

// state is the memory of one Redis.
type state struct {
	goods   []*keys
	counter int // for order numbers by INCR
	scripts bool
}

func (s state) clone() state {
	c := state{counter: s.counter, scripts: s.scripts}
	for _, k := range s.goods {
		c.goods = append(c.goods, k.clone())
	}
	return c
}

// server is one Redis: its memory, and its last states, for a replica or an append-only file that
// lags.
type server struct {
	w *world
	state
	replid  int
	up      bool
	demoted bool // a replica now, which rejects writes
	history []state
}

func (w *world) newServer() *server {
	s := &server{w: w, replid: w.id(), up: true}
	w.servers = append(w.servers, s)
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

// writing is called before each change. It keeps the state where the fault needs the history.
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

// past is the state some writes ago, at most as many as the history has.
func (s *server) past(writes int) state {
	if writes = min(writes, len(s.history)); writes == 0 {
		return s.clone()
	}
	return s.history[len(s.history)-writes].clone()
}

func (s *server) answers() bool { return s.up && !s.demoted }

// gateOf is gate.lua; old selects a script of an older release, which does not check the lease.
func (s *server) gateOf(goods int, old bool) (gate, *keys) {
	k := s.goods[goods]
	switch {
	case !s.answers():
		return unavailable, k
	case !k.loaded:
		return missing, k
	case k.shut:
		return shut, k
	case old && s.w.omits(LeaseInEveryRelease), s.w.omits(Lease):
		return open, k
	case s.w.omits(LeasePerSale):
		if !s.scripts {
			return leaseGone, k
		}
	case k.lease != s.replid:
		return leaseGone, k
	}
	if s.w.failsOver && !s.w.omits(OpeningInMySQL) && s.w.now >= k.openUntil {
		return openingOver, k
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

// has reports whether an order of a buyer is of this epoch, and the units that it holds.
func (k *keys) has(buyer, sn int) (units int, known bool) {
	for _, h := range k.buyers[buyer] {
		if h.sn == sn {
			return h.q, true
		}
	}
	return 0, false
}

func (k *keys) holds(buyer, sn int) bool { units, _ := k.has(buyer, sn); return units > 0 }

// setHolding sets the units of an order. When it sets none it prunes: ended orders are forgotten
// once their paths have ended, and at once without EndedOrdersStay.
func (k *keys) setHolding(w *world, buyer int, h held) {
	rest := slices.DeleteFunc(k.buyers[buyer], func(o held) bool { return o.sn == h.sn })
	if rest = append(rest, h); h.q == 0 {
		rest = slices.DeleteFunc(rest, func(o held) bool {
			return o.q == 0 && (w.now >= o.issued+w.pathLife || w.omits(EndedOrdersStay))
		})
	}
	if k.buyers[buyer] = rest; len(rest) == 0 {
		delete(k.buyers, buyer)
	}
}

func (k *keys) reserve(w *world, l line) {
	k.avail, k.pend = k.avail-l.q, k.pend+l.q
	k.setHolding(w, l.buyer, held{l.sn, l.q, l.issued})
	k.pending[l.sn] = pendingOrder{l, w.now}
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

// adopt is adopt.lua, which returns the units that each order has now. It takes them only behind an
// open gate of the epoch.
func (s *server) adopt(goods, epoch int, lines []line) (map[int]int, gate) {
	g, k := s.gateOf(goods, false)
	if g == unavailable {
		return nil, g
	}
	if !s.w.omits(AdoptWhileOpen) && (g != open || k.epoch != epoch) {
		return nil, max(g, otherEpoch)
	}
	took := make(map[int]int)
	s.writing()
	for _, l := range lines {
		units, known := k.has(l.buyer, l.sn)
		over := k.held(l.buyer)+l.q > s.w.limit[goods] && !s.w.omits(AdoptWithinLimit)
		switch {
		case units > 0 && s.w.omits(AdoptByQuantity):
			took[l.sn] = l.q
		case known: // 0 for an order that has ended
			took[l.sn] = units
		case over || l.q > k.avail:
			took[l.sn] = 0
			k.setHolding(s.w, l.buyer, held{l.sn, 0, l.issued})
		default:
			k.reserve(s.w, l)
			took[l.sn] = l.q
		}
	}
	return took, open
}

type applyResult int

const (
	applied applyResult = iota
	appliedBefore
	inEpoch
	applyLater
)

// release is release.lua for one stock move.
func (s *server) release(m *move) applyResult {
	if !s.answers() {
		return applyLater
	}
	g, k := s.gateOf(m.goods, false)
	if g != open && !s.w.omits(ReleaseUnderLease) {
		return applyLater
	}
	if !s.w.omits(ReleaseByEpoch) {
		if k.epoch < m.epoch {
			return applyLater
		}
		if k.epoch > m.epoch {
			return inEpoch
		}
	} else if !k.loaded {
		return applyLater
	}
	if k.moves[m.id] && !s.w.omits(ReleaseByID) {
		return appliedBefore
	}
	s.writing()
	k.moves[m.id] = true
	p, pending := k.pending[m.sn]
	if m.fail && !pending && k.holds(m.buyer, m.sn) {
		return applied
	}
	if !s.w.omits(ReleaseWithHolding) {
		k.setHolding(s.w, m.buyer, held{m.sn, 0, m.issued})
	}
	switch {
	case pending:
		delete(k.pending, m.sn)
		k.pend, k.avail = k.pend-p.q, k.avail+p.q
	case !m.fail:
		k.sold, k.avail = k.sold-m.q, k.avail+m.q
	}
	return applied
}

// shutFor is shut.lua. Redis then rejects the load of every epoch that MySQL has begun so far.
func (s *server) shutFor(goods, epoch int) {
	k := s.goods[goods]
	s.writing()
	k.fence, k.shut, k.ready = max(k.fence, epoch), k.loaded, false
}

// open opens the gate of an epoch whose opening MySQL has recorded.
func (s *server) open(goods, epoch, until int) bool {
	k := s.goods[goods]
	if !s.answers() || !k.ready || k.epoch != epoch || k.lease != s.replid {
		return false
	}
	s.writing()
	k.shut, k.ready, k.openUntil = false, false, until
	return true
}

// renew extends an opening.
func (s *server) renew(goods, epoch, until int) {
	k := s.goods[goods]
	if s.answers() && k.loaded && !k.shut && k.epoch == epoch && k.lease == s.replid {
		s.writing()
		k.openUntil = max(k.openUntil, until)
	}
}

// load is load.lua.
func (s *server) load(goods int, snap snapshot) bool {
	k := s.goods[goods]
	newest := 0
	if k.loaded {
		newest = k.epoch
	}
	if !s.w.omits(LoadFenced) && !s.w.omits(FencingToken) {
		newest = max(newest, k.fence)
	}
	if !s.answers() || newest >= snap.epoch && !s.w.omits(EpochInLoad) {
		return false
	}
	if g, _ := s.gateOf(goods, false); g == open {
		return false // another master than the one whose gate the rebuild shut
	}
	s.writing()
	s.scripts = true
	k.loaded, k.shut, k.epoch, k.lease = true, s.w.failsOver, snap.epoch, s.replid
	k.ready = k.shut
	k.avail, k.pend, k.sold, k.total = snap.stock, 0, snap.total-snap.stock, snap.total
	k.until = s.w.saleEnd
	k.pending, k.moves, k.buyers = map[int]pendingOrder{}, map[int]bool{}, map[int][]held{}
	if s.w.omits(HoldingsInDB) {
		return true
	}
	for _, o := range snap.orders {
		k.buyers[o.buyer] = append(k.buyers[o.buyer], held{o.sn, o.q, o.issued})
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
