package model

import (
	"fmt"
	"math/rand/v2"
)

// The ticks of the protocol's times.
const (
	publishDeadline = 10  // 1 s
	relayAfter      = 10  // 1 s
	tolerance       = 30  // 5 s there
	feedAge         = 150 // 60 s there
	lockLife        = 80  // 30 s there
	barrierPatience = lockLife - 2*publishDeadline
)

type world struct {
	rnd     *rand.Rand
	without Rule
	verbose bool
	trace   []string

	now, ids     int
	procs, ready []*proc
	nGoods       int
	limit        []int
	saleEnd      int
	payTime      int
	remember     bool

	current   *server
	broker    broker
	db        *mysql
	apis      []*host
	workers   []*host
	clients   []*client
	line      map[*host][][]*client
	epochs    map[*host][]int
	sleeper   *host
	lateSends int
	fault     fault
	faultAt   int
	healedAt  int
	healed    bool

	book  *book
	dirty bool
	err   *Violation
}

// Violation is a guarantee that a schedule broke.
type Violation struct {
	Seed      uint64
	Fault     string
	Tick      int
	Guarantee string
	What      string
	Trace     []string
}

// Error says what broke and how to see it again.
func (v *Violation) Error() string {
	return fmt.Sprintf("seed %d, %s, tick %d: %s: %s", v.Seed, v.Fault, v.Tick, v.Guarantee, v.What)
}

func (w *world) off(r Rule) bool { return w.without == r }

func (w *world) id() int { w.ids++; return w.ids }

func (w *world) broken(guarantee, format string, args ...any) {
	if w.err == nil {
		w.err = &Violation{Fault: w.fault.String(), Tick: w.now, Guarantee: guarantee, What: fmt.Sprintf(format, args...)}
	}
}

func (w *world) say(format string, args ...any) {
	if w.verbose {
		w.trace = append(w.trace, fmt.Sprintf("%4d ", w.now)+fmt.Sprintf(format, args...))
	}
}

func newWorld(seed uint64, without Rule) *world {
	rnd := rand.New(rand.NewPCG(seed, 0x5ec))
	w := &world{rnd: rnd, without: without, nGoods: 1 + rnd.IntN(2), line: map[*host][][]*client{}, epochs: map[*host][]int{}}
	w.book = newBook()
	w.ids = 1000
	w.fault = fault(rnd.IntN(int(lastFault)))
	w.remember = w.fault.needsPast()
	w.saleEnd, w.payTime = 1<<20, 60+rnd.IntN(200)
	if w.fault == clockSkew || rnd.IntN(8) == 0 {
		w.saleEnd = 50 + rnd.IntN(60)
	}
	w.current = w.newServer()
	w.broker.up = true
	for range 1 + rnd.IntN(2) {
		w.broker.queues = append(w.broker.queues, &queue{})
	}
	w.db = &mysql{w: w, up: true, bySn: map[[2]int]*row{}, holdings: map[[2]int]int{}, barriers: map[[2]int]bool{}}
	for range w.nGoods {
		stock := 2 + rnd.IntN(4)
		w.db.goods = append(w.db.goods, goodsRow{stock: stock, total: stock})
		w.limit = append(w.limit, 1+rnd.IntN(3))
	}
	w.hosts()
	w.crowd()
	return w
}

func (w *world) hosts() {
	for i := range 2 {
		h := &host{name: fmt.Sprint("api", i), boot: func(*host) {}}
		h.old = i == 1 && (w.rnd.IntN(4) == 0 || w.off(LeaseInEveryRelease))
		w.apis = append(w.apis, h)
		w.start(h)
	}
	for i := range 1 + min(1, w.rnd.IntN(3)) {
		h := &host{name: fmt.Sprint("worker", i), boot: w.bootWorker}
		w.workers = append(w.workers, h)
		w.start(h)
	}
	for g := range w.nGoods {
		w.later(w.rnd.IntN(10), func() { w.putUp(g) })
	}
}

func (w *world) start(h *host) {
	h.alive, h.redis = true, w.current
	w.line[h], w.epochs[h] = make([][]*client, w.nGoods), make([]int, w.nGoods)
	h.boot(h)
}

func (w *world) bootWorker(h *host) {
	for _, q := range w.broker.queues {
		w.spawn(h, w.rnd.IntN(5), func(p *proc) { w.consume(p, q) })
	}
	w.spawn(h, w.rnd.IntN(5), w.relay)
	w.spawn(h, w.rnd.IntN(10), w.give)
	w.spawn(h, w.rnd.IntN(10), w.expire)
	w.spawn(h, w.rnd.IntN(10), w.audit)
	w.spawn(h, 5+w.rnd.IntN(10), w.watch)
}

// Run plays one schedule, and returns what it broke, or nil.
func Run(seed uint64, without Rule, trace bool) *Violation {
	w := newWorld(seed, without)
	w.verbose = trace
	defer func() {
		for _, p := range w.procs {
			if !p.dead {
				w.end(p)
			}
		}
	}()
	w.plan()
	for n := 0; w.err == nil; n++ {
		w.advance()
		if w.dirty {
			w.dirty = false
			w.always()
		}
		if n%32 == 0 && w.healed && w.quiet() {
			w.atLast()
			break
		}
		if w.healed && w.now > w.healedAt+patience || n > 200_000 {
			w.broken("G4", "it does not drain: %s", w.whyNotQuiet())
		}
	}
	if w.err != nil {
		w.err.Seed, w.err.Trace = seed, w.trace
	}
	return w.err
}

// patience is how long after the last harm and the last buyer all must be calm.
const patience = 1500
