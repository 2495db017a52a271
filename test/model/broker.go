package model

import "slices"

// message carries lines, or is a barrier.
type message struct {
	lines    []line
	barrier  bool
	goods    int
	epoch    int
	token    int
	attempts int
}

// queue is one shard's: its consumer gets messages in order, and what it did not acknowledge comes again, in front.
type queue struct {
	ready   []message
	unacked []message
	owner   *stream
	gone    bool // deleted with the broker's data; who connects or publishes next declares it again
	unbound bool // there, but nothing is routed to it
}

type stream struct {
	q    *queue
	host *host
	over bool
}

type broker struct {
	up     bool
	queues []*queue
	fresh  bool // came back without its data, and nobody has fed it since
}

func (w *world) queueOf(goods int) *queue { return w.broker.queues[goods%len(w.broker.queues)] }

type sent int

const (
	confirmed sent = iota
	failed
	queueDown
)

// publish hands one message over and waits for the confirm. by is the tick at which its deadline ends.
func (w *world) publish(p *proc, goods int, m message, by int) sent {
	p.step()
	if !w.broker.up {
		return queueDown
	}
	if w.now > by && !p.host.inSocket(w) {
		return failed // the deadline ended before anything was sent
	}
	if w.now > by {
		w.lateSends++
	}
	q := w.queueOf(goods)
	if q.gone || q.unbound { // unroutable: returned, and acked
		p.step()
		if w.off(ReturnIsNack) {
			return confirmed
		}
		w.broker.fresh = w.broker.fresh || q.gone
		q.gone, q.unbound = false, false // the topology is declared again
		return failed
	}
	q.ready = append(q.ready, m)
	w.queued(m)
	p.step()
	if !w.broker.up || w.now > by {
		return failed // the outcome is unknown
	}
	return confirmed
}

// inSocket tells whether what a host that was asleep had handed to its socket goes out when it wakes.
func (h *host) inSocket(w *world) bool { return h != nil && h == w.sleeper }

func (w *world) openStream(h *host, q *queue) *stream {
	if !w.broker.up || q.owner != nil {
		return nil
	}
	w.broker.fresh = w.broker.fresh || q.gone
	q.gone = false
	q.owner = &stream{q: q, host: h}
	return q.owner
}

func (s *stream) receive(most int) []message {
	if s.over {
		return nil
	}
	n := min(most, len(s.q.ready))
	got := slices.Clone(s.q.ready[:n])
	for i := range got {
		got[i].attempts++
	}
	s.q.ready = s.q.ready[n:]
	s.q.unacked = append(s.q.unacked, got...)
	return got
}

func (s *stream) ack() {
	if !s.over {
		s.q.unacked = nil
	}
}

// close gives back what was not acknowledged.
func (s *stream) close() {
	if s == nil || s.over {
		return
	}
	s.over = true
	s.q.ready = append(s.q.unacked, s.q.ready...)
	s.q.unacked, s.q.owner = nil, nil
}

func (w *world) dropStreams(h *host) {
	for _, q := range w.broker.queues {
		if q.owner != nil && (h == nil || q.owner.host == h) {
			q.owner.close()
		}
	}
}

func (w *world) loseBroker(deleted bool) {
	w.dropStreams(nil)
	for _, q := range w.broker.queues {
		q.ready, q.gone = nil, deleted
	}
	w.broker.fresh = true
}
