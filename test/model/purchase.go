package model

import "slices"

// client is one buyer of one goods. It repeats its request until it has an answer.
type client struct {
	buyer, goods, q int
	path, issued    int // the random path, and the tick at which an API issued it
	api             *host
	waiting         bool // has a request under way at api
	twin            bool // repeats the path of another client
	tries           int
	again           int // number of further purchases
	done            bool
}

// addClients schedules the clients; some of them are the same buyer.
func (w *world) addClients() {
	for range 5 + w.rnd.IntN(6) {
		c := &client{
			buyer: 1 + w.rnd.IntN(6), goods: w.rnd.IntN(w.nGoods), q: 1, again: w.rnd.IntN(2),
		}
		if w.rnd.IntN(4) == 0 {
			c.q = 2
		}
		w.clients = append(w.clients, c)
		w.later(w.rnd.IntN(120), func() { w.ask(c) })
	}
}

// later schedules an event outside every host.
func (w *world) later(ticks int, do func()) {
	w.spawn(nil, ticks, func(*proc) { do() })
}

// ask sends a request to an API, which merges the requests for one goods into a batch.
func (w *world) ask(c *client) {
	if c.tries++; c.tries > 14 {
		c.done = true
		return
	}
	h := pick(w.rnd, w.apis)
	if !h.alive {
		w.later(5, func() { w.ask(c) })
		return
	}
	c.api, c.waiting = h, true
	w.waiting[h][c.goods] = append(w.waiting[h][c.goods], c)
	w.spawn(h, w.rnd.IntN(4), func(p *proc) { w.reserveBatch(p, c.goods) })
}

// share lets others use a client's path. A second tab or a proxy repeats it, perhaps with another
// quantity. A query asks for its number, which can be computed from the path.
func (w *world) share(c *client) {
	if w.rnd.IntN(3) == 0 {
		l := line{sn: c.path, goods: c.goods, buyer: c.buyer, q: c.q, issued: c.issued}
		w.spawn(pick(w.rnd, w.apis), w.rnd.IntN(60), func(p *proc) { w.queryOrder(p, l) })
	}
	if !c.twin && w.rnd.IntN(3) == 0 {
		twin := *c
		twin.twin, twin.again, twin.tries, twin.q = true, 0, 0, 1+w.rnd.IntN(2)
		w.clients = append(w.clients, &twin)
		w.later(w.rnd.IntN(1+w.rnd.IntN(1+w.rnd.IntN(120))), func() { w.ask(&twin) })
	}
}

// loseConnections lets the clients of a dead API repeat their requests with the same path.
func (w *world) loseConnections(h *host) {
	for _, c := range w.clients {
		if c.waiting && c.api == h {
			w.retry(c)
		}
	}
}

// retry schedules the same request again, as after a 503.
func (w *world) retry(c *client) {
	c.waiting = false
	w.later(5+w.rnd.IntN(15), func() { w.ask(c) })
}

// decision is the reserve script's result for one request.
type decision struct {
	taken, repeated, badPath, refused, limited bool
	line                                       line
}

// reserveBatch is one batch of the purchase service: one script, one message, one confirm.
func (w *world) reserveBatch(p *proc, goods int) {
	h := p.host
	batch := w.waiting[h][goods]
	w.waiting[h][goods] = nil
	if len(batch) == 0 {
		return
	}
	w.issuePaths(p, goods, batch)
	p.step()
	by := w.now + publishDeadline
	vs, id, ok := w.reserve(p, goods, batch)
	if !ok {
		for _, c := range batch {
			w.retry(c)
		}
		return
	}
	if p.host.redis != w.current && w.paused == nil && w.rnd.IntN(3) == 0 {
		w.suspend(p.host, 20+w.rnd.IntN(60)) // its message arrives after the rebuild
		for _, c := range batch {
			w.share(c)
		}
		p.pause()
	}
	p.step() // the reply is on the wire
	p.lag(6, 15)
	var taken []line
	var promised []*client
	for i, c := range batch {
		if vs[i].taken {
			taken, promised = append(taken, vs[i].line), append(promised, c)
			continue
		}
		if !vs[i].repeated {
			w.answer(c, vs[i])
		}
	}
	if len(taken) > 0 {
		w.publishBatch(p, goods, id, by, taken, promised)
	}
	for i, c := range batch {
		if vs[i].repeated {
			w.confirmAgain(p, c, vs[i], by)
		}
	}
}

// confirmAgain publishes the order of a repeated path while it is pending, and then answers. An
// order that is not pending must have a row: Redis may have lost it meanwhile.
func (w *world) confirmAgain(p *proc, c *client, v decision, by int) {
	p.step()
	s := p.host.redis
	pd, pending := s.goods[c.goods].pending[v.line.sn]
	ok := s.answers()
	if ok && pending {
		m := message{lines: []line{pd.line}, goods: c.goods}
		ok = w.publish(p, c.goods, m, by) != failed
	} else if ok {
		p.step()
		ok = w.db.up && w.answerable(w.db.find(c.goods, v.line.sn)) || w.omits(RepeatHasRow)
	}
	if !ok {
		w.retry(c) // 503
		return
	}
	w.answer(c, v)
}

// answerable reports whether a number may be answered 202. A parked order may still fail.
func (w *world) answerable(r *row) bool {
	return r != nil && (r.status != parked || w.omits(ParkedUndecided))
}

// publishBatch publishes the reserved orders of a batch, and answers their buyers.
func (w *world) publishBatch(p *proc, goods, id, by int, taken []line, promised []*client) {
	p.lag(3, 13)
	result := w.publish(p, goods, message{lines: taken, goods: goods}, by)
	for i, c := range promised {
		if result == failed && !w.omits(PromiseOnConfirm) {
			w.retry(c) // 503: the outcome is unknown
			continue
		}
		w.answer(c, decision{taken: true, line: taken[i]})
	}
	if result != confirmed {
		return
	}
	p.step()
	w.confirm(p.host.redis, goods, id)
}

// confirm deletes the batch from the outbox.
func (w *world) confirm(s *server, goods, id int) {
	if !s.answers() {
		return
	}
	k := s.goods[goods]
	s.writing()
	k.outbox = slices.DeleteFunc(k.outbox, func(e entry) bool {
		if e.id == id && w.omits(CommitEndsPending) {
			for _, l := range e.lines {
				if pd, ok := k.pending[l.sn]; ok {
					delete(k.pending, l.sn)
					k.pend, k.sold = k.pend-pd.q, k.sold+pd.q
				}
			}
		}
		return e.id == id
	})
}

// issuePaths gives a path to the clients that have none. It calls no Redis: the API has a view of
// the sale that is a little old, and its clock is Redis'.
func (w *world) issuePaths(p *proc, goods int, batch []*client) {
	p.step()
	if g, _ := p.host.redis.gateOf(goods, p.host.oldRelease); g != open {
		return
	}
	issued := p.host.redis.time()
	p.step()
	for _, c := range batch {
		if c.path == 0 {
			c.path, c.issued = w.id(), issued
			w.share(c)
		}
	}
}

// reserve is reserve.lua, called again where Redis has another epoch than the API knew.
func (w *world) reserve(p *proc, goods int, batch []*client) ([]decision, int, bool) {
	h := p.host
	for try := range 2 {
		g, k := h.redis.gateOf(goods, h.oldRelease)
		if g == open && k.epoch != w.epochs[h][goods] {
			w.epochs[h][goods] = k.epoch
			if try == 0 {
				p.step()
				continue
			}
			return nil, 0, false
		}
		if g != open {
			return nil, 0, false
		}
		break
	}
	s := h.redis
	k := s.goods[goods]
	s.writing()
	clock := s.time()
	if w.omits(RedisClock) {
		clock = w.now + h.skew
	}
	vs, avail := make([]decision, len(batch)), k.avail
	extra, taken := map[int]int{}, map[int]line{}
	for i, c := range batch {
		if l, again := taken[c.path]; again && !w.omits(GroupInOrder) {
			vs[i] = decision{repeated: true, line: l}
			continue
		}
		vs[i] = w.decide(s, k, c, clock, avail, extra[c.buyer])
		if vs[i].taken {
			avail, extra[c.buyer], taken[c.path] = avail-c.q, extra[c.buyer]+c.q, vs[i].line
		}
	}
	if w.omits(AtomicReserve) {
		p.step()
		s.writing()
	}
	return vs, w.applyReservations(s, k, vs), true
}

// decide checks one request: the buyer's orders, path, window, limit, stock.
func (w *world) decide(s *server, k *keys, c *client, clock, avail, extra int) decision {
	l := line{sn: c.path, goods: c.goods, buyer: c.buyer, q: c.q, epoch: k.epoch, issued: c.issued}
	if w.omits(OrderNumbersByAPI) {
		s.counter++
		l.sn = s.counter
	}
	_, known := k.has(c.buyer, l.sn)
	switch {
	case known:
		return decision{repeated: true, line: w.records.line(l)}
	case c.path == 0 || s.time() >= c.issued+w.pathLife,
		c.issued > s.time()+pathMargin && !w.omits(PathOfThisClock):
		return decision{badPath: true, line: l}
	case k.closed || clock >= k.until:
		return decision{limited: true}
	case k.held(c.buyer)+extra+c.q > k.limit:
		return decision{limited: true}
	case c.q > avail:
		return decision{refused: true}
	}
	return decision{taken: true, line: l}
}

// applyReservations reserves the units of a batch, and adds its outbox entry, whose id it returns.
func (w *world) applyReservations(s *server, k *keys, vs []decision) int {
	var lines []line
	for i := range vs {
		v := &vs[i]
		if !v.taken {
			continue
		}
		v.line.refusal = w.refusalOf(v.line)
		lines = append(lines, v.line)
		k.reserve(s, v.line)
		w.records.reserve(w, s, v.line)
	}
	if len(lines) == 0 || w.omits(Outbox) {
		return 0
	}
	id := w.id()
	k.outbox = append(k.outbox, entry{id: id, at: s.time(), lines: lines})
	if w.omits(OutboxTrimmedByID) && len(k.outbox) > 2 {
		k.outbox = slices.Clone(k.outbox[1:])
	}
	return id
}

// answer delivers a decision, and schedules the client's next step.
func (w *world) answer(c *client, v decision) {
	switch {
	case v.taken || v.repeated:
		c.waiting = false
		w.logf("%s promises order %d of goods %d (epoch %d) to buyer %d",
			c.api.name, v.line.sn, v.line.goods, v.line.epoch, v.line.buyer)
		w.promise(v.line, v.taken)
		w.afterPromise(c, v.line)
	case v.badPath && w.db.up && w.answerable(w.db.find(c.goods, c.path)): // its order
		c.waiting = false
		w.promise(v.line, false)
		w.afterPromise(c, v.line)
	case v.badPath && w.db.up && w.db.find(c.goods, c.path) == nil:
		c.path = 0
		w.retry(c)
	case v.limited:
		c.waiting, c.done = false, true
	default:
		c.tries += 3
		w.retry(c)
	}
}

// afterPromise schedules queries of the order, a payment or cancellation, and further purchases.
func (w *world) afterPromise(c *client, l line) {
	for range w.rnd.IntN(3) {
		w.spawn(pick(w.rnd, w.apis), w.rnd.IntN(5+w.rnd.IntN(60)),
			func(p *proc) { w.queryOrder(p, l) })
	}
	c.done = true
	switch w.rnd.IntN(5) {
	case 0:
		w.spawn(pick(w.rnd, w.apis), 10+w.rnd.IntN(60), func(*proc) { w.pay(l) })
	case 1, 2:
		w.spawn(pick(w.rnd, w.apis), 10+w.rnd.IntN(60), func(p *proc) { w.cancel(p, l) })
		if c.again > 0 { // a further purchase, or the same path again
			if c.again, c.done, c.tries = c.again-1, false, 6; w.rnd.IntN(2) == 0 {
				c.path = 0
			}
			w.later(20+w.rnd.IntN(100), func() { w.ask(c) })
		}
	case 3, 4:
		if c.again > 0 { // the answer was lost: the client repeats its path, by any API
			c.again, c.done = c.again-1, false
			c.q = 1 + w.rnd.IntN(2)
			w.later(w.rnd.IntN(60), func() { w.ask(c) })
		}
	}
}
