package model

import "slices"

// client is one buyer who wants one thing, and asks again until there is an answer.
type client struct {
	buyer, goods, q int
	path            int
	node            *host
	waiting         bool // has a request under way at node
	tries           int
	again           int // how often it will buy anew after a cancel
	done            bool
}

// crowd makes the buyers; some of them are the same person.
func (w *world) crowd() {
	for range 5 + w.rnd.IntN(6) {
		c := &client{buyer: 1 + w.rnd.IntN(6), goods: w.rnd.IntN(w.nGoods), q: 1, again: w.rnd.IntN(2)}
		if w.rnd.IntN(4) == 0 {
			c.q = 2
		}
		w.clients = append(w.clients, c)
		w.later(w.rnd.IntN(120), func() { w.ask(c) })
	}
}

// later does something from outside every host.
func (w *world) later(ticks int, do func()) {
	w.spawn(nil, ticks, func(*proc) { do() })
}

// ask goes to a node; whoever waits there for the same goods travels together.
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
	c.node, c.waiting = h, true
	w.line[h][c.goods] = append(w.line[h][c.goods], c)
	w.spawn(h, w.rnd.IntN(4), func(p *proc) { w.trip(p, c.goods) })
}

// hangUp is what clients of a node that died see: no answer; they ask again, with the same path.
func (w *world) hangUp(h *host) {
	for _, c := range w.clients {
		if c.waiting && c.node == h {
			w.retry(c)
		}
	}
}

func (w *world) retry(c *client) {
	c.waiting = false
	w.later(5+w.rnd.IntN(15), func() { w.ask(c) })
}

type verdict struct {
	taken, repeated, badPath, refused, limited bool
	line                                       line
}

// trip is Desk.reserveTrip: one script for all who wait, one message, one confirm.
func (w *world) trip(p *proc, goods int) {
	h := p.host
	group := w.line[h][goods]
	w.line[h][goods] = nil
	if len(group) == 0 {
		return
	}
	w.paths(p, goods, group)
	p.step()
	vs, id, ok := w.reserve(p, goods, group)
	if !ok {
		for _, c := range group {
			w.retry(c)
		}
		return
	}
	p.step() // the reply is on its way
	if w.rnd.IntN(6) == 0 {
		p.sleep(w.rnd.IntN(15))
	}
	var taken []line
	var carried []*client
	for i, c := range group {
		if vs[i].taken {
			taken, carried = append(taken, vs[i].line), append(carried, c)
			continue
		}
		w.answer(c, vs[i])
	}
	if len(taken) > 0 {
		w.send(p, goods, id, taken, carried)
	}
}

// send is Desk.publish.
func (w *world) send(p *proc, goods, id int, taken []line, carried []*client) {
	by := w.now + publishDeadline
	if w.rnd.IntN(4) == 0 {
		p.sleep(w.rnd.IntN(13))
	}
	result := w.publish(p, goods, message{lines: taken, goods: goods}, by)
	for i, c := range carried {
		if result == failed && !w.off(PromiseOnConfirm) {
			w.book.of(taken[i]).late = true
			w.retry(c) // "the outcome is unknown, ask again with the same path"
			continue
		}
		w.answer(c, verdict{taken: true, line: taken[i]})
	}
	if result != confirmed {
		return
	}
	p.step()
	w.confirm(p.host.redis, goods, id)
}

// confirm is XDEL of the outbox.
func (w *world) confirm(s *server, goods, id int) {
	if !s.answers() {
		return
	}
	k := s.goods[goods]
	s.writing()
	k.outbox = slices.DeleteFunc(k.outbox, func(e entry) bool {
		if e.id == id && w.off(CommitEndsPending) {
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

// paths is paths.lua for those of the group who have none.
func (w *world) paths(p *proc, goods int, group []*client) {
	p.step()
	s := p.host.redis
	g, k := s.gateOf(goods, p.host.old)
	if g != open {
		return
	}
	for _, c := range group {
		if c.path == 0 {
			s.writing()
			c.path = w.id()
			epoch := k.epoch
			if p.host.old && !w.off(LeaseInEveryRelease) {
				epoch = 0 // an old release wrote the buyer alone
			}
			k.paths[c.path] = permit{buyer: c.buyer, epoch: epoch}
		}
	}
}

// reserve is reserve.lua, asked once more where Redis has another epoch than the node knew.
func (w *world) reserve(p *proc, goods int, group []*client) ([]verdict, int, bool) {
	h := p.host
	for try := range 2 {
		g, k := h.redis.gateOf(goods, h.old)
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
	clock := w.now
	if w.off(RedisClock) {
		clock += h.skew
	}
	vs, avail := make([]verdict, len(group)), k.avail
	extra := map[int]int{}
	for i, c := range group {
		vs[i] = w.judge(s, k, c, clock, avail, extra[c.buyer])
		if vs[i].taken {
			avail, extra[c.buyer] = avail-c.q, extra[c.buyer]+c.q
		}
	}
	if w.off(OneScript) {
		p.step()
		s.writing()
	}
	return vs, w.takeAll(s, k, group, vs), true
}

func (w *world) judge(s *server, k *keys, c *client, clock, avail, extra int) verdict {
	pm, ok := k.paths[c.path]
	switch {
	case !ok || pm.buyer != c.buyer:
		return verdict{badPath: true}
	case pm.sn != 0:
		return verdict{repeated: true, line: w.book.line(c.goods, pm.sn)}
	case pm.epoch != k.epoch && !w.off(PathsOfOneEpoch):
		return verdict{badPath: true}
	case clock >= k.until:
		return verdict{limited: true}
	case k.held(c.buyer)+extra+c.q > w.limit[c.goods]:
		return verdict{limited: true}
	case c.q > avail:
		return verdict{refused: true}
	}
	l := line{sn: w.id(), goods: c.goods, buyer: c.buyer, q: c.q, epoch: k.epoch, path: c.path}
	if w.off(NumbersByAPI) {
		s.counter++
		l.sn = s.counter
	}
	return verdict{taken: true, line: l}
}

func (w *world) takeAll(s *server, k *keys, group []*client, vs []verdict) int {
	var lines []line
	for i, v := range vs {
		if !v.taken {
			continue
		}
		lines = append(lines, v.line)
		k.take(v.line, w.now)
		k.paths[group[i].path] = permit{buyer: v.line.buyer, epoch: k.epoch, sn: v.line.sn}
		w.book.take(w, s, v.line)
	}
	if len(lines) == 0 || w.off(Outbox) {
		return 0
	}
	id := w.id()
	k.outbox = append(k.outbox, entry{id: id, at: w.now, lines: lines})
	if w.off(OutboxTrimmedByID) && len(k.outbox) > 2 {
		k.outbox = slices.Clone(k.outbox[1:])
	}
	return id
}

// answer is what the buyer sees, and what the buyer does then.
func (w *world) answer(c *client, v verdict) {
	switch {
	case v.taken || v.repeated:
		c.waiting = false
		w.say("%s promises order %d of goods %d (epoch %d) to buyer %d", c.node.name, v.line.sn, v.line.goods, v.line.epoch, v.line.buyer)
		w.book.promise(v.line)
		w.afterwards(c, v.line)
	case v.badPath:
		c.path = 0
		w.retry(c)
	case v.limited:
		c.waiting, c.done = false, true
	default:
		c.tries += 3
		w.retry(c)
	}
}

// afterwards: ask what has become of it, pay or cancel, perhaps ask the same path again, perhaps buy anew.
func (w *world) afterwards(c *client, l line) {
	for range w.rnd.IntN(3) {
		w.spawn(pick(w.rnd, w.apis), w.rnd.IntN(5+w.rnd.IntN(60)), func(p *proc) { w.find(p, l) })
	}
	c.done = true
	switch w.rnd.IntN(5) {
	case 0:
		w.spawn(pick(w.rnd, w.apis), 10+w.rnd.IntN(60), func(p *proc) { w.pay(p, l) })
	case 1, 2:
		w.spawn(pick(w.rnd, w.apis), 10+w.rnd.IntN(60), func(p *proc) { w.cancel(p, l) })
		if c.again > 0 {
			c.again, c.path, c.done, c.tries = c.again-1, 0, false, 6
			w.later(60+w.rnd.IntN(60), func() { w.ask(c) })
		}
	case 3:
		if c.again > 0 { // the answer was lost on its way: the same path again
			c.again, c.done = c.again-1, false
			w.later(w.rnd.IntN(60), func() { w.ask(c) })
		}
	}
}
