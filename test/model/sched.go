package model

import (
	"iter"
	"math/rand/v2"
)

// proc is one thread of a host: a coroutine that stops at each step until the scheduler resumes it.
type proc struct {
	w     *world
	host  *host // killed and paused with it; nil for an event outside every host
	wake  int   // not before this tick
	dead  bool
	yield func(struct{}) bool
	next  func() (struct{}, bool)
	stop  func()
}

// host is a process: killing it ends its threads between two steps.
type host struct {
	name       string
	redis      *server // the master this host is connected to
	alive      bool
	boot       func(*host)
	skew       int // ticks by which its clock is ahead
	drift      int // percent by which its timers are slow
	oldRelease bool
}

// ticks is how long a timer of this host takes.
func (h *host) ticks(n int) int { return n + n*h.drift/100 }

// killed is the panic that ends a proc whose host is killed.
type killed struct{}

// spawn starts a proc after a delay in ticks.
func (w *world) spawn(h *host, delay int, body func(*proc)) {
	p := &proc{w: w, host: h, wake: w.now + delay}
	p.next, p.stop = iter.Pull(func(yield func(struct{}) bool) {
		defer func() {
			if r := recover(); r != nil {
				if _, ok := r.(killed); !ok {
					panic(r)
				}
			}
		}()
		p.yield = yield
		body(p)
	})
	w.procs = append(w.procs, p)
}

// step separates two atomic steps; now and then it takes some ticks.
func (p *proc) step() {
	if p.w.rnd.IntN(8) == 0 {
		p.wake = p.w.now + 1 + p.w.rnd.IntN(5)
	}
	p.pause()
}

func (p *proc) pause() {
	if !p.yield(struct{}{}) {
		panic(killed{})
	}
}

func (p *proc) sleep(ticks int) {
	p.wake = p.w.now + ticks
	p.pause()
}

// lag sleeps for less than ticks, in one of oneIn cases.
func (p *proc) lag(oneIn, ticks int) {
	if p.w.rnd.IntN(oneIn) == 0 {
		p.sleep(p.w.rnd.IntN(ticks))
	}
}

// round sleeps a random time around ticks, so that the rounds of two hosts drift apart.
func (p *proc) round(ticks int) { p.sleep(ticks/2 + 1 + p.w.rnd.IntN(ticks)) }

// kill ends every proc of a host, and its connections.
func (w *world) kill(h *host) {
	h.alive = false
	for _, p := range w.procs {
		if p.host == h && !p.dead {
			w.end(p)
		}
	}
	w.dropStreams(h)
	w.loseConnections(h)
}

func (w *world) end(p *proc) {
	p.dead = true
	p.stop()
}

// pauseHost stops every thread of a host, as SIGSTOP would.
func (w *world) pauseHost(h *host, ticks int) {
	for _, p := range w.procs {
		if p.host == h && !p.dead {
			p.wake = max(p.wake, w.now+ticks)
		}
	}
}

// advance resumes one random proc for one step, and advances the clock.
func (w *world) advance() {
	if w.rnd.IntN(6) == 0 {
		w.now++
	}
	ready, soonest := w.ready[:0], 1<<30
	live := w.procs[:0]
	for _, p := range w.procs {
		if p.dead {
			continue
		}
		live = append(live, p)
		if p.wake <= w.now {
			ready = append(ready, p)
		}
		soonest = min(soonest, p.wake)
	}
	w.procs, w.ready = live, ready
	if len(ready) == 0 {
		w.now = soonest
		return
	}
	p := ready[w.rnd.IntN(len(ready))]
	if _, more := p.next(); !more {
		p.dead = true
	}
}

func pick[T any](rnd *rand.Rand, list []T) T { return list[rnd.IntN(len(list))] }
