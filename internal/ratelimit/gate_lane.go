package ratelimit

import (
	"context"
	"errors"
	"sync"
	"time"
)

// errBusy says that more asks wait for Redis than it can answer in time.
var errBusy = errors.New("ratelimit: too many asks wait for redis")

const (
	batchAsks = 256
	queueAsks = 10_000
)

// call is one ask on its way. finish is called once, by the lane's runner.
type call struct {
	rule   string
	ask    Ask
	sent   time.Time
	finish func(Decision, error)
}

// lanes send asks to Redis, many in a trip: whoever is there when the last trip
// returns goes on the next. In a cluster there is one lane for each hash tag,
// else one for all.
type lanes struct {
	store    Store
	deadline time.Duration
	cluster  bool
	now      func() time.Time
	meter    Meter
	breaker  *breaker
	running  sync.WaitGroup

	mu   sync.Mutex
	open map[string]*lane
}

type lane struct{ queue []*call }

// send queues a call and sees to it that somebody drives its lane.
func (l *lanes) send(c *call) {
	c.sent = l.now()
	if !l.breaker.allow(c.sent) {
		c.finish(Decision{}, errOpen)
		return
	}
	tag := ""
	if l.cluster {
		tag = hashTag(c.ask.Key)
	}
	l.mu.Lock()
	at, driven := l.open[tag]
	if !driven {
		at = &lane{}
		l.open[tag] = at
		l.running.Add(1)
	}
	full := len(at.queue) >= queueAsks
	if !full {
		at.queue = append(at.queue, c)
	}
	l.mu.Unlock()
	if full {
		c.finish(Decision{}, errBusy)
	}
	if !driven {
		go l.drive(tag, at)
	}
}

// drive makes trips until nobody is left, and then closes the lane.
func (l *lanes) drive(tag string, at *lane) {
	defer l.running.Done()
	for {
		l.mu.Lock()
		batch := at.queue[:min(len(at.queue), batchAsks)]
		at.queue = at.queue[len(batch):]
		if len(batch) == 0 {
			delete(l.open, tag)
			l.mu.Unlock()
			return
		}
		l.mu.Unlock()
		l.trip(l.drop(batch))
	}
}

// drop leaves out who has waited too long to be answered in time.
func (l *lanes) drop(batch []*call) []*call {
	now := l.now()
	fresh := batch[:0:0]
	for _, c := range batch {
		if now.Sub(c.sent) >= l.deadline {
			c.finish(Decision{}, context.DeadlineExceeded)
			continue
		}
		fresh = append(fresh, c)
	}
	return fresh
}

// trip is on behalf of many: no caller's context ends it.
func (l *lanes) trip(batch []*call) {
	if len(batch) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), l.deadline)
	defer cancel()
	groups := make([][]Ask, len(batch))
	for i, c := range batch {
		groups[i] = []Ask{c.ask}
	}
	decisions, err := l.store.TakeEach(ctx, groups...)
	l.meter.Count(batch[0].rule, EventRedisCall)
	l.breaker.record(l.now(), err == nil)
	for i, c := range batch {
		if err != nil {
			c.finish(Decision{}, err)
			continue
		}
		c.finish(decisions[i], nil)
	}
}
