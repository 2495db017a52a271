package model

import "slices"

// fault is the one failure of a schedule.
type fault int

const (
	nothing fault = iota
	killAPI
	killWorker
	cutConsumer
	twiceAndMixed
	redisRestart
	redisLosesTail
	redisFlushed
	redisPaused
	failover
	failBack
	brokerDown
	brokerEmptied
	queueDeleted
	queueUnbound
	queuePurged
	mysqlDown
	apiPaused
	workerPaused
	poison
	clockSkew
	lastFault
)

var faultNames = [...]string{
	"no fault", "API killed", "worker killed", "consumer cut off", "messages doubled and regrouped",
	"Redis restarted", "Redis restarted without its last writes", "FLUSHALL", "Redis paused",
	"failover to a replica that lags", "failover, and back to the old master", "broker down",
	"broker emptied", "queue deleted", "queue unbound", "queue purged", "MySQL down",
	"API paused", "worker paused", "poison order", "clock skew",
}

// String names the fault.
func (f fault) String() string { return faultNames[f] }

// needsHistory reports whether the fault returns to an earlier state of Redis.
func (f fault) needsHistory() bool { return f == redisLosesTail || f == failover || f == failBack }

// plan schedules the fault and rebuilds by an operator.
func (w *world) plan() {
	w.faultAt = 5 + w.rnd.IntN(140)
	w.later(w.faultAt, w.inject)
	if w.rnd.IntN(2) == 0 {
		w.rebuildManually(20 + w.rnd.IntN(150))
	}
	if w.clockStep != 0 && w.fault != failover && w.fault != failBack && w.fault != queuePurged {
		w.setClock(w.current, w.faultAt+w.rnd.IntN(40)-20)
	}
	if w.stagesInSteps { // the fault comes while a rebuild stages
		w.rebuildManually(max(0, w.faultAt-20-w.rnd.IntN(20)))
	}
	if w.harder && (w.fault == brokerEmptied || w.fault == queuePurged) { // while a rebuild drains
		w.rebuildManually(max(0, w.faultAt-publishDeadline-w.rnd.IntN(20)))
	}
	if w.fault == apiPaused || w.fault == workerPaused {
		w.rebuildManually(max(0, w.faultAt-w.rnd.IntN(30)))
		w.rebuildManually(w.faultAt + w.rnd.IntN(120))
	}
}

// rebuildManually is "seckillctl rebuild".
func (w *world) rebuildManually(at int) {
	w.later(at, func() {
		h, g := pick(w.rnd, w.workers), w.rnd.IntN(w.nGoods)
		if h.alive {
			w.spawn(h, 0, func(p *proc) { w.rebuild(p, g) })
		}
	})
}

// healIn schedules the end of the fault. The model checks all guarantees once it is drained after
// that.
func (w *world) healIn(ticks int, heal func()) {
	w.later(ticks, func() {
		if heal != nil {
			heal()
		}
		w.logf("healed")
		w.healed, w.healedAt = true, w.now
	})
}

// inject starts the fault of the schedule.
func (w *world) inject() {
	w.logf("fault: %s", w.fault)
	outage := 10 + w.rnd.IntN(50)
	switch w.fault {
	case killAPI, killWorker:
		w.killOne(outage)
		return
	case apiPaused, workerPaused:
		w.pauseOne()
		return
	case redisPaused:
		w.current.up = false
		w.healIn(outage, func() { w.current.up = true })
		return
	case brokerDown:
		w.broker.up = false
		w.dropStreams(nil)
		w.healIn(outage, func() { w.broker.up = true })
		return
	case mysqlDown:
		w.db.up, w.db.session = false, w.db.session+1
		w.healIn(outage, func() { w.db.up = true })
		return
	case failover, failBack:
		w.failOver()
		return
	case clockSkew:
		w.apis[0].skew, w.apis[1].skew = 40, -40
	default:
		w.injectAtOnce()
	}
	w.healIn(1, nil)
}

// injectAtOnce injects a fault that ends at once.
func (w *world) injectAtOnce() {
	s := w.current
	switch w.fault {
	case cutConsumer:
		if q := pick(w.rnd, w.broker.queues); q.owner != nil {
			q.owner.close()
		}
	case twiceAndMixed:
		w.mix()
	case redisRestart:
		s.restart(s.clone(), w.id())
	case redisLosesTail:
		s.restart(s.past(1+w.rnd.IntN(8)), w.id())
	case redisFlushed:
		s.writing()
		scripts := s.scripts
		s.empty()
		s.scripts = scripts
	case brokerEmptied, queueDeleted:
		w.loseBroker(w.fault == queueDeleted)
	case queueUnbound:
		pick(w.rnd, w.broker.queues).unbound = true
	case queuePurged:
		q := pick(w.rnd, w.broker.queues)
		q.ready = nil
	case poison:
		g := w.rnd.IntN(w.nGoods)
		bad := line{sn: -1, goods: g, buyer: 99, q: 1, epoch: w.db.goods[g].epoch, bad: true}
		q := w.queueOf(g)
		q.ready = slices.Insert(q.ready, 0, message{goods: g, lines: []line{bad}})
	}
}

// restart replaces the memory of a Redis. Its new replication id ends every lease.
func (s *server) restart(to state, replid int) {
	s.state, s.replid, s.scripts = to, replid, false
	s.w.dirty = true
}

// killOne kills a random host, and starts it again after an outage.
func (w *world) killOne(outage int) {
	hosts := w.apis
	if w.fault == killWorker {
		hosts = w.workers
	}
	h := pick(w.rnd, hosts)
	w.logf("%s is killed", h.name)
	w.kill(h)
	w.healIn(outage, func() { w.start(h) })
}

// pauseOne pauses a random host.
func (w *world) pauseOne() {
	hosts, ticks := w.apis, 20+w.rnd.IntN(60)
	if w.fault == workerPaused {
		hosts, ticks = w.workers, lockLife/2+w.rnd.IntN(lockLife)
	}
	w.suspend(pick(w.rnd, hosts), ticks)
	w.healIn(ticks+publishDeadline, nil)
}

// suspend pauses a host. The bytes in its sockets are sent when it resumes.
func (w *world) suspend(h *host, ticks int) {
	w.logf("%s is paused for %d", h.name, ticks)
	w.paused = h
	w.pauseHost(h, ticks)
	w.later(ticks+publishDeadline, func() { w.paused = nil })
}

// mix doubles every message in the queues, with its lines in other batches and another order.
func (w *world) mix() {
	for _, q := range w.broker.queues {
		byGoods := make([][]line, w.nGoods)
		for _, m := range append(slices.Clone(q.unacked), q.ready...) {
			byGoods[m.goods] = append(byGoods[m.goods], m.lines...)
		}
		for g, lines := range byGoods {
			w.rnd.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
			for len(lines) > 0 {
				n := min(1+w.rnd.IntN(3), len(lines))
				q.ready = append(q.ready, message{goods: g, lines: lines[:n]})
				lines = lines[n:]
			}
		}
	}
}

// failOver promotes a replica that lacks the last writes. Each host notices a little later; until
// then the old master accepts its writes.
func (w *world) failOver() {
	old, next := w.current, w.newServer()
	next.state = old.past(w.rnd.IntN(9))
	next.scripts = false
	switch w.clockStep {
	case -smallStep, smallStep:
		next.ahead = w.clockStep
	case -hour, hour:
		w.setClock(old, w.rnd.IntN(notice))
	}
	w.promote(old, next)
	w.later(notice, func() { old.demoted = w.current != old })
	if w.fault == failover {
		w.healIn(notice+1, nil)
		return
	}
	w.later(8+w.rnd.IntN(80), func() {
		old.demoted, old.scripts = false, true
		if w.rnd.IntN(2) == 0 {
			old.replid = w.id()
		}
		w.promote(next, old)
		w.later(notice, func() { next.demoted = w.current != next })
		w.healIn(notice+1, nil)
	})
}

// setClock sets the clock of a Redis forward or back.
func (w *world) setClock(s *server, in int) {
	w.later(in, func() {
		w.logf("the clock of server %d is set by %d", s.replid, w.clockStep)
		s.ahead += w.clockStep
		w.dirty = true
	})
}

// promote makes another Redis master; each host connects to it some ticks later.
func (w *world) promote(from, to *server) {
	w.logf("failover from %d to %d", from.replid, to.replid)
	w.current, w.dirty = to, true
	w.records.failOver(from, to)
	for _, h := range w.apis {
		w.later(w.rnd.IntN(notice), func() { h.redis = w.current })
	}
	for _, h := range w.workers {
		w.later(w.rnd.IntN(1+w.rnd.IntN(notice)), func() { h.redis = w.current })
	}
	for _, c := range slices.Clone(w.clients) {
		if c.path != 0 {
			w.share(c)
		}
	}
}
