package model

import "slices"

// message has the lines of a batch of orders, or is a barrier.
type message struct {
	lines    []line
	barrier  bool
	goods    int
	token    int
	attempts int
}

// queue is the queue of one shard. It delivers messages in order to one consumer. It first
// redelivers messages that the consumer has not acknowledged.
type queue struct {
	ready   []message
	unacked []message
	owner   *stream
	gone    bool // deleted; the next connection or publish declares it again
	unbound bool // declared, but without its binding
}

// stream is the subscription of one consumer to a queue.
type stream struct {
	q    *queue
	host *host
	over bool
}

// broker is RabbitMQ: a queue for each shard.
type broker struct {
	up     bool
	queues []*queue
	fresh  bool // lost its data, and pending orders are not yet republished
}

func (w *world) queueOf(goods int) *queue { return w.broker.queues[goods%len(w.broker.queues)] }

// sent is the outcome of a publish.
type sent int

const (
	confirmed sent = iota
	failed
	queueDown
)

// publish sends one message and waits for the confirm until the tick by.
func (w *world) publish(p *proc, goods int, m message, by int) sent {
	p.step()
	if !w.broker.up {
		return queueDown
	}
	if w.now > by && !p.host.sendsLate(w) {
		return failed // the deadline ended before anything was sent
	}
	q := w.queueOf(goods)
	if q.gone || q.unbound { // unroutable: returned, and confirmed
		p.step()
		if w.omits(ReturnIsNack) {
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

// sendsLate reports whether the fault paused the host. The broker then receives the bytes in its
// sockets later.
func (h *host) sendsLate(w *world) bool { return h != nil && h == w.paused }

// openStream subscribes to a queue. It returns nil where another host is its active consumer.
func (w *world) openStream(h *host, q *queue) *stream {
	if !w.broker.up || q.owner != nil {
		return nil
	}
	w.broker.fresh = w.broker.fresh || q.gone
	q.gone = false
	q.owner = &stream{q: q, host: h}
	return q.owner
}

// receive takes at most the given number of messages, which stay unacknowledged.
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

// close requeues the unacknowledged messages.
func (s *stream) close() {
	if s == nil || s.over {
		return
	}
	s.over = true
	s.q.ready = append(s.q.unacked, s.q.ready...)
	s.q.unacked, s.q.owner = nil, nil
}

// dropStreams ends the subscriptions of a host, or of all hosts if it is nil.
func (w *world) dropStreams(h *host) {
	for _, q := range w.broker.queues {
		if q.owner != nil && (h == nil || q.owner.host == h) {
			q.owner.close()
		}
	}
}

// loseBroker restarts the broker without its messages. If deleted is set, its queues are lost too.
func (w *world) loseBroker(deleted bool) {
	w.dropStreams(nil)
	for _, q := range w.broker.queues {
		q.ready, q.gone = nil, deleted
	}
	w.broker.fresh = true
}
