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
	refusal                            refusal
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
	// ready: loaded, and to be opened once MySQL has recorded the opening. It is open from openFrom
	// to openUntil by this Redis' clock.
	ready                           bool
	openFrom, openUntil             int
	epoch, lease, fence             int
	avail, pend, sold, total, until int
	// closed and limit are of this version of MySQL's row.
	closed         bool
	limit, version int
	// buyers has the orders of each buyer in this epoch.
	buyers map[int][]held
	// staged has the buyers of epochs that are not loaded yet.
	staged  map[int]map[int][]held
	pending map[int]pendingOrder
	outbox  []entry
	// moves has the ids of the stock moves that this epoch has applied, and with false those of the
	// cuts that it has refused.
	moves           map[int]bool
	lock, lockUntil int
}

func (k *keys) clone() *keys {
	c := *k
	c.buyers = make(map[int][]held, len(k.buyers))
	for b, h := range k.buyers {
		c.buyers[b] = slices.Clone(h)
	}
	c.staged = make(map[int]map[int][]held, len(k.staged))
	for epoch, buyers := range k.staged {
		c.staged[epoch] = maps.Clone(buyers)
	}
	c.pending, c.moves = maps.Clone(k.pending), maps.Clone(k.moves)
	c.outbox = slices.Clone(k.outbox)
	return &c
}

func newKeys() *keys {
	return &keys{
		buyers: map[int][]held{}, staged: map[int]map[int][]held{},
		pending: map[int]pendingOrder{}, moves: map[int]bool{},
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
	ahead   int // ticks by which its clock is ahead
	drift   int // percent by which its clock is fast
	up      bool
	demoted bool // a replica now, which rejects writes
	history []state
}

func (w *world) newServer() *server {
	s := &server{w: w, replid: w.id(), up: true, drift: w.drawDrift()}
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

// time is its clock. Without ahead it is behind the schedule's time where its drift is negative.
func (s *server) time() int { return s.w.now + s.ahead + s.w.now*s.drift/100 }

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
	over := s.time() >= k.openUntil || s.time() < k.openFrom && !s.w.omits(OpenFrom)
	if s.w.failsOver && !s.w.omits(OpeningInMySQL) && over {
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
// once their paths have ended some time ago, and at once without EndedOrdersStay.
func (k *keys) setHolding(s *server, buyer int, h held) {
	rest := slices.DeleteFunc(k.buyers[buyer], func(o held) bool { return o.sn == h.sn })
	if rest = append(rest, h); h.q == 0 {
		rest = slices.DeleteFunc(rest, func(o held) bool {
			unusable := s.time() >= o.issued+s.w.pathLife+clockMargin
			return o.q == 0 && (unusable || s.w.omits(EndedOrdersStay))
		})
	}
	if k.buyers[buyer] = rest; len(rest) == 0 {
		delete(k.buyers, buyer)
	}
}

// reserve takes the units of an order. The gate of a clock that is set back later is not open.
func (k *keys) reserve(s *server, l line) {
	k.avail, k.pend = k.avail-l.q, k.pend+l.q
	k.setHolding(s, l.buyer, held{l.sn, l.q, l.issued})
	k.pending[l.sn] = pendingOrder{l, s.time()}
	k.openFrom = max(k.openFrom, s.time()-1)
}

// settle is settle.lua.
func (s *server) settle(goods int, sns []int) {
	if !s.answers() {
		return
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
}

// adopt is adopt.lua, which returns the units that each order has now. It takes them only behind an
// open gate of the epoch. A requeue takes units again for an order that has ended.
func (s *server) adopt(goods, epoch int, lines []line, again bool) (map[int]int, gate) {
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
		limited := !s.w.omits(AdoptWithinLimit) && (!again || !s.w.omits(RequeueWithinLimit))
		over := limited && k.held(l.buyer)+l.q > s.w.db.goods[goods].maxLimit
		switch {
		case units > 0 && s.w.omits(AdoptByQuantity):
			took[l.sn] = l.q
		case known && (units > 0 || !again): // 0 for an order that has ended
			took[l.sn] = units
		case over || l.q > k.avail:
			took[l.sn] = 0
			k.setHolding(s, l.buyer, held{l.sn, 0, l.issued})
		default:
			k.reserve(s, l)
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
	cutTooLarge
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
	switch done, known := k.moves[m.id]; {
	case done && !s.w.omits(ReleaseByID):
		return appliedBefore
	case known && !done && !s.w.omits(RefusedCutStays):
		return cutTooLarge
	}
	s.writing()
	k.moves[m.id] = m.kind != cut || m.q <= k.avail
	p, pending := k.pending[m.sn]
	switch {
	case !k.moves[m.id]:
		return cutTooLarge
	case m.kind == cut:
		k.avail, k.total = k.avail-m.q, k.total-m.q
		return applied
	case m.kind == raise:
		k.avail, k.total = k.avail+m.q, k.total+m.q
		return applied
	case m.kind == fail && !pending && k.holds(m.buyer, m.sn):
		return applied
	}
	if !s.w.omits(ReleaseWithHolding) {
		k.setHolding(s, m.buyer, held{m.sn, 0, m.issued})
	}
	switch {
	case pending:
		delete(k.pending, m.sn)
		k.pend, k.avail = k.pend-p.q, k.avail+p.q
	case m.kind != fail:
		k.sold, k.avail = k.sold-m.q, k.avail+m.q
	}
	return applied
}

// shutFor is shut.lua. Redis then rejects the load of every epoch that MySQL has begun so far. It
// changes nothing where it has a newer epoch.
func (s *server) shutFor(goods, epoch int) bool {
	k := s.goods[goods]
	if k.loaded && k.epoch > epoch {
		return false
	}
	s.writing()
	k.fence, k.shut, k.ready = max(k.fence, epoch), k.loaded, false
	return true
}

// open opens the gate of an epoch whose opening MySQL has recorded.
func (s *server) open(goods, epoch, now int) bool {
	k := s.goods[goods]
	if !s.answers() || !k.ready || k.epoch != epoch || k.lease != s.replid {
		return false
	}
	s.writing()
	k.shut, k.ready, k.openFrom, k.openUntil = false, false, now-1, now+openFor
	return true
}

// renew extends an opening. The time of a clock that was set back since is replaced.
func (s *server) renew(goods, epoch, now int) {
	k := s.goods[goods]
	if !s.answers() || !k.loaded || k.shut || k.epoch != epoch || k.lease != s.replid {
		return
	}
	s.writing()
	if now+openFor > k.openUntil || s.time() < k.openFrom {
		k.openFrom, k.openUntil = now-1, now+openFor
	}
}

// stage keeps what one buyer holds for the load of an epoch.
func (s *server) stage(goods, epoch, buyer int, orders []held) bool {
	if !s.answers() {
		return false
	}
	s.writing()
	k := s.goods[goods]
	if k.staged[epoch] == nil {
		k.staged[epoch] = map[int][]held{}
	}
	k.staged[epoch][buyer] = orders
	return true
}

// load is load.lua. It refuses unless all the buyers are there that the rebuild has staged.
func (s *server) load(goods int, snap snapshot) bool {
	k := s.goods[goods]
	staged := k.staged[snap.epoch]
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
	if k.version > snap.version && !s.w.omits(VersionInLoad) {
		return false // a merchant's change that the snapshot lacks
	}
	if len(staged) != len(snap.buyers) && !s.w.omits(StagedCounted) {
		return false // Redis has lost some, or is another one
	}
	s.writing()
	s.scripts = true
	k.loaded, k.shut, k.epoch, k.lease = true, s.w.failsOver, snap.epoch, s.replid
	k.ready = k.shut
	k.avail, k.pend, k.sold, k.total = snap.stock, 0, snap.total-snap.stock, snap.total
	k.until, k.closed, k.limit, k.version = s.w.saleEnd, snap.closed, snap.limit, snap.version
	k.pending, k.moves, k.buyers = map[int]pendingOrder{}, map[int]bool{}, map[int][]held{}
	for buyer, orders := range staged {
		k.buyers[buyer] = slices.Clone(orders)
	}
	k.staged = map[int]map[int][]held{}
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

// extendLock stands for the renewals while a rebuild waits.
func (s *server) extendLock(goods, holder, ticks int) {
	if k := s.goods[goods]; s.answers() && k.lock == holder {
		k.lockUntil += ticks
	}
}

func (s *server) unlock(goods, holder int) {
	if k := s.goods[goods]; s.answers() && k.lock == holder {
		k.lock = 0
	}
}
