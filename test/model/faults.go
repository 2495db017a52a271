package model

import "slices"

// fault is the one thing that goes wrong in a schedule.
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
	apiAsleep
	workerAsleep
	poison
	clockSkew
	lastFault
)

var faultNames = [...]string{
	"no fault", "API killed", "worker killed", "consumer cut off", "messages twice and in other groups", "Redis restarted",
	"Redis restarted without its last writes", "FLUSHALL", "Redis paused", "failover to a replica that lags",
	"failover, and back to the old master", "broker down", "broker emptied", "queue deleted", "queue unbound", "queue purged", "MySQL down",
	"API asleep", "worker asleep", "poison order", "clock skew",
}

// String names the fault.
func (f fault) String() string { return faultNames[f] }

// losesRedis tells whether reservations are gone from Redis: with a publisher that missed its deadline, two things fail.
func (f fault) losesRedis() bool { return f.needsPast() || f == redisFlushed }

func (f fault) needsPast() bool { return f == redisLosesTail || f == failover || f == failBack }

// plan decides when the fault strikes, when it is over, and which sales are rebuilt by hand on the way.
func (w *world) plan() {
	w.faultAt = 5 + w.rnd.IntN(140)
	w.later(w.faultAt, w.strike)
	if w.rnd.IntN(2) == 0 {
		w.byHand(20 + w.rnd.IntN(150))
	}
	if w.fault == apiAsleep || w.fault == workerAsleep {
		w.byHand(max(0, w.faultAt-w.rnd.IntN(30)))
		w.byHand(w.faultAt + w.rnd.IntN(120))
	}
}

// byHand is seckillctl rebuild.
func (w *world) byHand(at int) {
	w.later(at, func() {
		h, g := pick(w.rnd, w.workers), w.rnd.IntN(w.nGoods)
		if h.alive {
			w.spawn(h, 0, func(p *proc) { w.rebuild(p, g) })
		}
	})
}

func (w *world) healIn(ticks int, heal func()) {
	w.later(ticks, func() {
		if heal != nil {
			heal()
		}
		w.say("healed")
		w.healed, w.healedAt = true, w.now
	})
}

func (w *world) strike() {
	w.say("fault: %s", w.fault)
	outage := 10 + w.rnd.IntN(50)
	switch w.fault {
	case killAPI, killWorker:
		w.killOne(outage)
		return
	case apiAsleep, workerAsleep:
		w.sleepOne()
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
		w.db.up = false
		w.healIn(outage, func() { w.db.up = true })
		return
	case failover, failBack:
		w.failOver()
		return
	case clockSkew:
		w.apis[0].skew, w.apis[1].skew = 40, -40
	default:
		w.strikeAtOnce()
	}
	w.healIn(1, nil)
}

func (w *world) strikeAtOnce() {
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
		w.broker.queues[g%len(w.broker.queues)].ready = slices.Insert(w.queueOf(g).ready, 0,
			message{goods: g, lines: []line{{sn: -1, goods: g, buyer: 99, q: 1, epoch: w.db.goods[g].epoch, bad: true}}})
	}
}

func (s *server) restart(to state, replid int) {
	s.state, s.replid, s.scripts = to, replid, false
	s.w.dirty = true
}

func (w *world) killOne(outage int) {
	hosts := w.apis
	if w.fault == killWorker {
		hosts = w.workers
	}
	h := pick(w.rnd, hosts)
	w.say("%s is killed", h.name)
	w.kill(h)
	w.healIn(outage, func() { w.start(h) })
}

func (w *world) sleepOne() {
	hosts, ticks := w.apis, 20+w.rnd.IntN(60)
	if w.fault == workerAsleep {
		hosts, ticks = w.workers, lockLife/2+w.rnd.IntN(lockLife)
	}
	h := pick(w.rnd, hosts)
	w.say("%s falls asleep for %d", h.name, ticks)
	w.sleeper = h
	w.asleep(h, ticks)
	w.healIn(ticks+publishDeadline, func() { w.sleeper = nil })
}

// mix brings every message that waits a second time, its lines in other groups and another order.
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

// failOver promotes a replica that lacks the last writes. Each host notices a little later; till then the old master takes
// its writes.
func (w *world) failOver() {
	old, next := w.current, w.newServer()
	next.state = old.past(w.rnd.IntN(9))
	next.scripts = false
	w.promote(old, next)
	w.later(31, func() { old.demoted = w.current != old })
	if w.fault == failover {
		w.healIn(32, nil)
		return
	}
	w.later(8+w.rnd.IntN(80), func() {
		old.demoted, old.scripts = false, true
		if w.rnd.IntN(2) == 0 {
			old.replid = w.id()
		}
		w.promote(next, old)
		w.later(31, func() { next.demoted = w.current != next })
		w.healIn(32, nil)
	})
}

func (w *world) promote(from, to *server) {
	w.say("failover from %d to %d", from.replid, to.replid)
	w.current, w.dirty = to, true
	w.book.failOver(from, to)
	for _, h := range append(slices.Clone(w.apis), w.workers...) {
		w.later(w.rnd.IntN(30), func() { h.redis = w.current })
	}
}
