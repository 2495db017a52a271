package model

import "slices"

type status int

const (
	created status = iota
	paid
	cancelled
	expired
	failedOrder
)

func (s status) active() bool { return s == created || s == paid }

type row struct {
	line
	status status
	payBy  int
	tomb   bool // told lost: its message has not come
}

type move struct {
	id, goods, epoch, buyer, sn, q int
	fail, given                    bool
	at                             int
}

type goodsRow struct{ stock, total, version, epoch, token int }

type snapshot struct {
	epoch, stock, total int
	active              []row
}

type mysql struct {
	w        *world
	up       bool
	goods    []goodsRow
	orders   []*row
	bySn     map[[2]int]*row
	holdings map[[2]int]int
	moves    []*move
	barriers map[[2]int]bool // goods, token
}

type outcome struct {
	created, existing []int
	moves             []*move
	adopt             []line // nothing was written: these must be adopted first
	epoch             int
}

func (m *mysql) find(goods, sn int) *row { return m.bySn[[2]int{goods, sn}] }

func (m *mysql) insert(l line, s status) {
	m.w.dirty = true
	r := &row{line: l, status: s, payBy: m.w.now + m.w.payTime}
	if m.find(l.goods, l.sn) != nil {
		m.w.broken("G7", "order %d of goods %d was written twice", l.sn, l.goods)
	}
	m.w.writtenInTime(l)
	m.orders = append(m.orders, r)
	m.bySn[[2]int{l.goods, l.sn}] = r
}

func (m *mysql) newMove(l line, fail bool) *move {
	mv := &move{id: m.w.id(), goods: l.goods, epoch: m.goods[l.goods].epoch, buyer: l.buyer, sn: l.sn, q: l.q, fail: fail, at: m.w.now}
	m.moves = append(m.moves, mv)
	return mv
}

// hold changes what a buyer holds.
func (m *mysql) hold(goods, buyer, q int) {
	if !m.w.off(HoldingsInDB) {
		m.holdings[[2]int{goods, buyer}] += q
	}
}

// plan is what a transaction read; with LockedGoods on nothing comes between reading and writing.
func (m *mysql) changeStock(goods, seen, by int) {
	m.w.dirty = true
	g := &m.goods[goods]
	g.stock, g.version = seen+by, g.version+1
}

// writeBatch is sqlstore's, one transaction.
func (m *mysql) writeBatch(p *proc, goods int, lines []line, s sight) outcome {
	g := m.goods[goods]
	out := outcome{epoch: g.epoch}
	seen := map[int]bool{}
	var fresh, lost []line
	for _, l := range lines {
		r := m.find(goods, l.sn)
		switch {
		case m.w.off(Dedupe):
			fresh = append(fresh, l)
		case seen[l.sn]:
		case r == nil:
			fresh = append(fresh, l)
		case r.status != failedOrder:
			out.existing = append(out.existing, l.sn)
		case r.tomb:
			lost = append(lost, l)
		}
		seen[l.sn] = true
	}
	for _, l := range fresh {
		if l.epoch < g.epoch && (s.adoptedBy != g.epoch || !s.adopted[l.sn]) && !m.w.off(LateAdopted) {
			out.adopt = append(out.adopt, l)
		}
	}
	if len(out.adopt) > 0 {
		return out
	}
	for _, l := range lost {
		out.moves = append(out.moves, m.identify(l)...)
	}
	seenStock := g.stock
	if m.w.off(LockedGoods) {
		p.step()
	}
	if m.w.off(DedupeByNumber) && len(fresh) < len(lines) {
		m.byAffectedRows(goods, lines, fresh, seenStock, &out)
		return out
	}
	m.judge(goods, fresh, seenStock, &out)
	return out
}

func (m *mysql) judge(goods int, fresh []line, stock int, out *outcome) {
	sold := 0
	for _, l := range fresh {
		over := !m.w.off(HoldingsInDB) && m.holdings[[2]int{goods, l.buyer}]+l.q > m.w.limit[goods]
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

// byAffectedRows is INSERT IGNORE, and the belief that the last n of the batch are the n that were new.
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

// entomb is sqlstore's Lost, in the transaction that found no row.
func (m *mysql) entomb(l line) {
	m.w.dirty = true
	r := &row{line: l, status: failedOrder, tomb: true}
	m.orders = append(m.orders, r)
	m.bySn[[2]int{l.goods, l.sn}] = r
}

// identify is what a late order finds that was told lost: it stays so, and what an adoption has taken for it goes back.
func (m *mysql) identify(l line) []*move {
	m.find(l.goods, l.sn).tomb = false
	if m.w.off(TombGivesBack) {
		return nil
	}
	return []*move{m.newMove(l, true)}
}

// fail writes an order as failed, with the move that gives back what it took of Redis.
func (m *mysql) fail(l line) *move {
	m.insert(l, failedOrder)
	return m.newMove(l, true)
}

// finish ends created orders: cancel and expiry.
func (m *mysql) finish(p *proc, goods int, rows []*row, to status) []*move {
	stock := m.goods[goods].stock
	if m.w.off(LockedGoods) {
		p.step()
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
		moves = append(moves, m.newMove(r.line, false))
	}
	if units > 0 {
		m.changeStock(goods, stock, units)
	}
	return moves
}

func (m *mysql) nextToken(goods int) int {
	m.goods[goods].token++
	return m.goods[goods].token
}

// beginEpoch is sqlstore's; false where a newer token was given out.
func (m *mysql) beginEpoch(goods, token int) (snapshot, bool) {
	g := &m.goods[goods]
	if token != g.token && !m.w.off(FencingToken) || token == 0 && g.epoch > 0 {
		return snapshot{}, false
	}
	g.epoch++
	s := snapshot{epoch: g.epoch, stock: g.stock, total: g.total}
	for _, r := range m.orders {
		if r.goods == goods && r.status.active() {
			s.active = append(s.active, *r)
		}
	}
	return s, true
}

func (m *mysql) notGiven(before int) []*move {
	var list []*move
	for _, mv := range m.moves {
		if !mv.given && mv.at <= before {
			list = append(list, mv)
		}
	}
	return list
}

func (m *mysql) due(goods int) []*row {
	return slices.DeleteFunc(slices.Clone(m.orders), func(r *row) bool {
		return r.goods != goods || r.status != created || r.payBy > m.w.now
	})
}
