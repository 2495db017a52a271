package model

import (
	"maps"
	"slices"
)

type status int

const (
	created status = iota
	paid
	cancelled
	expired
	failedOrder
	parked // a late order that no open gate of the present epoch has adopted
)

func (s status) active() bool { return s == created || s == paid }

// row is one order.
type row struct {
	line
	status    status
	payBy     int
	tombstone bool // answered as lost before its message arrived
}

// moveKind is the reason for a stock move.
type moveKind int

const (
	ended moveKind = iota // an order was cancelled, or has expired
	fail
	raise // a merchant has added units
	cut   // a merchant withdraws unsold units
)

// move is a stock move: units that MySQL has released, and Redis must release too.
type move struct {
	id, goods, epoch, buyer, sn, q, issued int
	kind                                   moveKind
	applied, deleted                       bool
	at, lockedIn                           int
}

// goodsRow is the row of one sale; token is the newest fencing token. openedOn is the replication
// id of the Redis that may have the gate open, where Redis can fail over; 0 if none has. ending:
// nobody renews it any more.
type goodsRow struct {
	stock, total, version, epoch, token, openedOn int
	ending                                        bool
	lockedIn                                      int // the session of a transaction that commits
	// limit is the units that one buyer may hold. maxLimit is the highest so far: an order of
	// before an amendment is still written.
	limit, maxLimit int
	closed          bool
}

// snapshot is what a rebuild reads of MySQL when it begins an epoch: by buyer the active orders,
// and with no units the others whose path may still be used.
type snapshot struct {
	goodsRow
	buyers map[int][]held
}

// mysql is the database. Its methods are transactions; those that take a proc can be interrupted
// where the schedule leaves out LockedStock.
type mysql struct {
	w        *world
	up       bool
	session  int // a transaction ends with the session in which it began
	goods    []goodsRow
	orders   []*row
	bySn     map[[2]int]*row
	holdings map[[2]int]int
	moves    []*move
	cuts     []*move         // those that MySQL has not ended; each has the epoch that decides it
	barriers map[[2]int]bool // goods, token
	// repaired: MySQL no longer refuses every row of some orders.
	repaired    bool
	deadLetters []*deadLetter
}

// outcome is the result of a batch writer's transaction.
type outcome struct {
	created, existing []int
	moves             []*move
	adopt             []line // if not empty, the batch is not written: Redis must first adopt these
	epoch             int
	refused           bool // nothing is written
}

func (m *mysql) find(goods, sn int) *row { return m.bySn[[2]int{goods, sn}] }

// insert adds an order, in place of its parked row. A second row for the same number violates G7.
func (m *mysql) insert(l line, s status) {
	m.w.dirty = true
	m.w.noteFailed(l, s)
	r := &row{line: l, status: s, payBy: m.w.now + m.w.payTime}
	switch old := m.find(l.goods, l.sn); {
	case old == nil:
		m.w.requireWrittenInTime(l)
	case old.status == parked:
		m.orders = slices.DeleteFunc(m.orders, func(o *row) bool { return o == old })
	default:
		m.w.violated("G7", "order %d of goods %d was written twice", l.sn, l.goods)
	}
	m.orders = append(m.orders, r)
	m.bySn[[2]int{l.goods, l.sn}] = r
}

// unwritten reports whether a message may still write an order.
func unwritten(r *row) bool { return r == nil || r.status == parked }

// park writes late orders as parked, unless they are.
func (m *mysql) park(lines []line) {
	for _, l := range lines {
		if m.find(l.goods, l.sn) == nil {
			m.w.logf("order %d of goods %d is parked", l.sn, l.goods)
			m.insert(l, parked)
		}
	}
}

// parkedLines lists the parked orders of a goods.
func (m *mysql) parkedLines(goods int) []line {
	var lines []line
	for _, r := range m.orders {
		if r.goods == goods && r.status == parked {
			lines = append(lines, r.line)
		}
	}
	return lines
}

// newMove records that Redis must release the units of an order.
func (m *mysql) newMove(l line, kind moveKind) *move {
	mv := &move{
		id: m.w.id(), goods: l.goods, epoch: m.goods[l.goods].epoch, buyer: l.buyer,
		sn: l.sn, q: l.q, issued: l.issued, kind: kind, at: m.w.now,
	}
	m.moves = append(m.moves, mv)
	return mv
}

// hold changes a buyer's holding.
func (m *mysql) hold(goods, buyer, q int) {
	if !m.w.omits(HoldingsInDB) {
		m.holdings[[2]int{goods, buyer}] += q
	}
}

// changeStock writes the stock from the value that the transaction has read. With LockedStock no
// other transaction can write in between.
func (m *mysql) changeStock(goods, seen, by int) {
	m.w.dirty = true
	g := &m.goods[goods]
	g.stock, g.version = seen+by, g.version+1
}

// writeBatch is the batch writer's transaction.
func (m *mysql) writeBatch(p *proc, goods int, lines []line, s adoption) outcome {
	g := m.goods[goods]
	out := outcome{epoch: g.epoch}
	seen := map[int]bool{}
	var fresh, lost []line
	for _, l := range lines {
		r := m.find(goods, l.sn)
		switch {
		case m.w.omits(ExistingNumbersChecked):
			fresh = append(fresh, l)
		case seen[l.sn]:
		case unwritten(r):
			fresh = append(fresh, l)
		case m.settles(r):
			out.existing = append(out.existing, l.sn)
		case r.tombstone:
			lost = append(lost, l)
		}
		seen[l.sn] = true
	}
	for _, l := range fresh {
		adopted := s.adoptedBy == g.epoch && s.adopted[l.sn] == l.q
		if l.epoch < g.epoch && !adopted && !m.w.omits(LateOrdersAdopted) {
			out.adopt = append(out.adopt, l)
		}
	}
	if len(out.adopt) > 0 && !s.park {
		return out
	}
	fresh = slices.DeleteFunc(fresh, func(l line) bool { return slices.Contains(out.adopt, l) })
	if slices.ContainsFunc(fresh, m.refuses) {
		return outcome{refused: true}
	}
	m.park(out.adopt)
	out.adopt = nil
	for _, l := range lost {
		out.moves = append(out.moves, m.resolveTombstone(l)...)
	}
	seenStock := g.stock
	if m.w.omits(LockedStock) {
		p.step()
	}
	if m.w.omits(DuplicatesByNumber) && len(fresh) < len(lines) {
		m.byAffectedRows(goods, lines, fresh, seenStock, &out)
		return out
	}
	m.judge(goods, fresh, seenStock, &out)
	return out
}

// judge writes the new orders of a batch: those within stock and limit as created, others as
// failed.
func (m *mysql) judge(goods int, fresh []line, stock int, out *outcome) {
	sold := 0
	for _, l := range fresh {
		holds := m.holdings[[2]int{goods, l.buyer}]
		over := holds+l.q > m.goods[goods].maxLimit && !m.w.omits(HoldingsInDB)
		if over || l.q > stock-sold {
			out.moves = append(out.moves, m.fail(l))
			continue
		}
		m.insert(l, created)
		m.hold(goods, l.buyer, l.q)
		sold += l.q
		out.created = append(out.created, l.sn)
	}
	if sold > 0 {
		m.changeStock(goods, stock, -sold)
	}
}

// byAffectedRows is INSERT IGNORE, which takes the last n lines of the batch for the n new ones.
func (m *mysql) byAffectedRows(goods int, lines, fresh []line, stock int, out *outcome) {
	for _, l := range fresh {
		m.insert(l, created)
		out.created = append(out.created, l.sn)
	}
	sold := 0
	for _, l := range lines[len(lines)-len(fresh):] {
		m.hold(goods, l.buyer, l.q)
		sold += l.q
	}
	if sold > 0 {
		m.changeStock(goods, stock, -sold)
	}
}

// insertTombstone inserts the tombstone unless there is a row, or another epoch has begun than that
// of the Redis which does not have the order.
func (m *mysql) insertTombstone(l line, epoch int) bool {
	if m.find(l.goods, l.sn) != nil || epoch != m.goods[l.goods].epoch || !m.writable(l.goods) {
		return false
	}
	m.w.dirty = true
	m.w.noteFailed(l, failedOrder)
	r := &row{line: l, status: failedOrder, tombstone: true}
	m.orders = append(m.orders, r)
	m.bySn[[2]int{l.goods, l.sn}] = r
	return true
}

// resolveTombstone leaves a late order failed that was answered as lost. It releases the units that
// an adoption reserved for the order.
func (m *mysql) resolveTombstone(l line) []*move {
	r := m.find(l.goods, l.sn)
	r.line, r.tombstone = l, false
	m.addDeadLetter(l)
	if m.w.omits(TombstoneReleases) {
		return nil
	}
	return []*move{m.newMove(l, fail)}
}

// fail writes an order as failed, with the stock move that releases its units in Redis.
func (m *mysql) fail(l line) *move {
	m.insert(l, failedOrder)
	m.addDeadLetter(l)
	return m.newMove(l, fail)
}

// finish ends created orders: cancellation and expiry.
func (m *mysql) finish(p *proc, goods int, rows []*row, to status) []*move {
	stock := m.goods[goods].stock
	if m.w.omits(LockedStock) {
		p.step()
	}
	if m.locked(goods) {
		return nil
	}
	var moves []*move
	units := 0
	for _, r := range rows {
		if r.status != created {
			continue
		}
		m.w.dirty = true
		r.status = to
		m.hold(goods, r.buyer, -r.q)
		units += r.q
		moves = append(moves, m.newMove(r.line, ended))
	}
	if units > 0 {
		m.changeStock(goods, stock, units)
	}
	return moves
}

// beginCut adds the row of a cut. MySQL changes nothing else until Redis has the units.
func (m *mysql) beginCut(goods, q int) *move {
	c := &move{
		id: m.w.id(), goods: goods, epoch: m.goods[goods].epoch, q: q, kind: cut, at: m.w.now,
	}
	if !m.w.omits(CutIsARow) {
		m.cuts = append(m.cuts, c)
	}
	return c
}

// endCut ends a cut by the answer of Redis. An answer of an older epoch is void: the next load had
// the units again. Where the sale no longer allows the cut, a move returns the units to Redis.
func (m *mysql) endCut(c *move, epoch int, result applyResult) []*move {
	g := &m.goods[c.goods]
	void := result == inEpoch || c.epoch != g.epoch || epoch != g.epoch
	switch {
	case c.applied:
		return nil
	case void && !m.w.omits(CutOfThisEpoch):
		c.epoch = g.epoch
		return nil
	}
	m.w.dirty, c.applied = true, true
	m.cuts = slices.DeleteFunc(m.cuts, func(o *move) bool { return o == c })
	switch {
	case result == cutTooLarge:
		return nil
	case g.closed || g.stock < c.q:
		return []*move{m.newMove(line{goods: c.goods, q: c.q}, raise)}
	}
	g.stock, g.total, g.version = g.stock-c.q, g.total-c.q, g.version+1
	return nil
}

// nextToken issues a fencing token; a rebuild with an older one can begin no epoch.
func (m *mysql) nextToken(goods int) int {
	m.goods[goods].token++
	return m.goods[goods].token
}

// beginEpoch begins an epoch. It returns false if a newer token was issued. It writes the parked
// orders first, within stock and limits. Then it reads the active orders, and those whose paths may
// be used after the tick now.
func (m *mysql) beginEpoch(goods, token, now int) (snapshot, bool) {
	g := &m.goods[goods]
	if token != g.token && !m.w.omits(FencingToken) || token == 0 && g.epoch > 0 {
		return snapshot{}, false
	}
	if slices.ContainsFunc(m.parkedLines(goods), m.refuses) {
		return snapshot{}, false
	}
	if g.openedOn != 0 && !g.ending && !m.w.omits(OpeningInMySQL) {
		return snapshot{}, false
	}
	g.openedOn, g.ending = 0, false
	if !m.w.omits(ParkedBeforeEpoch) {
		m.judge(goods, m.parkedLines(goods), g.stock, &outcome{})
	}
	g.epoch, g.version = g.epoch+1, g.version+1
	s := snapshot{goodsRow: *g, buyers: map[int][]held{}}
	for _, r := range m.orders {
		h := held{r.sn, r.q, r.issued}
		if !r.status.active() {
			h.q = 0
		}
		usable := now < r.issued+m.w.pathLife+clockMargin && !m.w.omits(LoadUsablePaths)
		if r.goods == goods && (h.q > 0 || usable) && !m.w.omits(HoldingsInDB) {
			s.buyers[r.buyer] = append(s.buyers[r.buyer], h)
		}
	}
	return s, true
}

// recordOpening records that a Redis may open the gate of an epoch, or with 0 that none has it
// open. It returns false if a rebuild began since.
func (m *mysql) recordOpening(goods, token, epoch, replid int) bool {
	g := &m.goods[goods]
	if g.token != token || g.epoch != epoch || replid == 0 && !g.ending {
		return false
	}
	g.openedOn = replid
	return true
}

// endOpening ends the opening of a sale for a rebuild: nobody renews it from now on. It returns the
// Redis that had it, and false if a newer rebuild has begun.
func (m *mysql) endOpening(goods, token int) (replid int, ok bool) {
	g := &m.goods[goods]
	if g.token != token {
		return 0, false
	}
	g.ending = true
	return g.openedOn, true
}

// openOn lists the sales that are open on a Redis, with their epochs.
func (m *mysql) openOn(replid int) map[int]int {
	list := make(map[int]int)
	for goods, g := range m.goods {
		if g.openedOn == replid && !g.ending {
			list[goods] = g.epoch
		}
	}
	return list
}

// pendingMoves lists the moves up to a tick that Redis has not confirmed.
func (m *mysql) pendingMoves(before int) []*move {
	var list []*move
	for _, mv := range m.moves {
		if !mv.applied && mv.at <= before {
			list = append(list, mv)
		}
	}
	return list
}

// forget deletes what is final, at once where the product keeps it for a week: the moves that Redis
// has applied, and the barriers that a newer token has replaced. Tombstones are kept for longer
// than any message may take.
func (m *mysql) forget() {
	m.moves = slices.DeleteFunc(m.moves, func(mv *move) bool { return mv.applied })
	maps.DeleteFunc(m.barriers, func(of [2]int, _ bool) bool {
		return of[1] < m.goods[of[0]].token
	})
	if !m.w.omits(TombstonesKept) {
		return
	}
	m.orders = slices.DeleteFunc(m.orders, func(r *row) bool { return r.tombstone })
	maps.DeleteFunc(m.bySn, func(_ [2]int, r *row) bool { return r.tombstone })
}

// due lists the unpaid orders whose time to pay has passed.
func (m *mysql) due(goods int) []*row {
	return slices.DeleteFunc(slices.Clone(m.orders), func(r *row) bool {
		return r.goods != goods || r.status != created || r.payBy > m.w.now
	})
}
