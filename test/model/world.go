package model

import (
	"fmt"
	"math/rand/v2"
)

// The protocol's times in ticks. A comment gives the product's value where it differs.
const (
	publishDeadline = 10  // 1 s
	relayAfter      = 10  // 1 s
	tolerance       = 30  // 5 s
	republishAge    = 150 // 60 s
	reconcileRound  = 20  // 5 s
	lockLife        = 80  // 2 s, renewed
	barrierPatience = lockLife - 2*publishDeadline
	clockMargin     = 40 // 5 minutes
	pathMargin      = 20 // 5 s
	smallStep       = 15 // 1.5 s, of Redis' clock
	lostMargin      = 20 // 5 s
	openFor         = 50 // 5 s
	foreignFor      = 3
	openMargin      = 5
	maxDrains       = 3
	requeueSalt     = 0x912728 // schedules of the seeds of older witnesses have no requeues
	harderOf        = 12830    // a quarter of so many seeds; it keeps the seeds of witnesses
	mostDrift       = 3        // percent by which a clock is fast or slow: sixty times what NTP allows
	notice          = 150      // 15 s: by then every host uses the new master of a failover
	hour            = 36000    // by which the clocks of the workers are ahead
)

// world is the state of one schedule: every server, every host, the clients and the fault.
type world struct {
	rnd *rand.Rand
	// omitted is the rule that this schedule runs without.
	omitted Rule
	verbose bool
	trace   []string

	now, ids     int
	procs, ready []*proc
	nGoods       int
	// saleEnd and payTime are ticks: the end of every sale, and the time to pay an order.
	saleEnd, payTime int
	// pathLife is the ticks for which a path permits a purchase: a minute in the product, here long
	// or short beside a rebuild.
	pathLife int
	// failsOver: Redis has replicas, and openings stand in MySQL.
	failsOver bool
	// stagesInSteps: a rebuild stages one buyer at a time.
	stagesInSteps bool
	// clockStep is the ticks by which Redis' clock is set forward, or back, about when the fault
	// comes. A promoted replica's clock differs from its master's by that.
	clockStep int
	// harder: a rebuild drains again where orders are missing, consumers have backlogs, merchants
	// withdraw units and clocks drift.
	harder bool
	// drifts: the clocks of servers and hosts are fast or slow.
	drifts bool
	// changes: merchants change and close their sales.
	changes bool
	// requeues: MySQL refuses some orders, and operators requeue dead letters.
	requeues bool
	// remember makes servers keep their last states; only some faults need them.
	remember bool

	// current is the Redis that is master. A host may still be connected to the previous one.
	current *server
	servers []*server
	broker  broker
	db      *mysql
	apis    []*host
	workers []*host
	clients []*client
	// waiting has, for each API and goods, the clients whose requests form the next batch.
	waiting map[*host][][]*client
	// epochs has, for each API and goods, the epoch that the API knows.
	epochs map[*host][]int
	// paused is the host that the fault paused, until shortly after it runs again.
	paused   *host
	fault    fault
	faultAt  int
	healedAt int
	healed   bool

	records *records
	// dirty is set by each change of a server. The model checks the invariants after such a step.
	dirty bool
	err   *Violation
}

// Violation is a guarantee that a schedule violates.
type Violation struct {
	Seed      uint64
	Fault     string
	Tick      int
	Guarantee string
	What      string
	Trace     []string
}

// Error returns the violation and the seed, which repeats the schedule.
func (v *Violation) Error() string {
	return fmt.Sprintf("seed %d, %s, tick %d: %s: %s", v.Seed, v.Fault, v.Tick, v.Guarantee, v.What)
}

func (w *world) omits(r Rule) bool { return w.omitted == r }

func (w *world) id() int { w.ids++; return w.ids }

func (w *world) violated(guarantee, format string, args ...any) {
	if w.err == nil {
		what := fmt.Sprintf(format, args...)
		w.err = &Violation{Fault: w.fault.String(), Tick: w.now, Guarantee: guarantee, What: what}
	}
}

func (w *world) logf(format string, args ...any) {
	if w.verbose {
		w.trace = append(w.trace, fmt.Sprintf("%4d ", w.now)+fmt.Sprintf(format, args...))
	}
}

func newWorld(seed uint64, without Rule) *world {
	rnd := rand.New(rand.NewPCG(seed, 0x5ec))
	w := &world{
		rnd: rnd, omitted: without, nGoods: 1 + rnd.IntN(2),
		waiting: map[*host][][]*client{}, epochs: map[*host][]int{},
	}
	w.records = newRecords()
	w.ids = 1000
	w.fault = fault(rnd.IntN(int(lastFault)))
	w.remember = w.fault.needsHistory()
	w.failsOver = w.fault == failover || w.fault == failBack || rnd.IntN(4) == 0
	w.saleEnd, w.payTime = 1<<20, 60+rnd.IntN(200)
	w.pathLife = []int{5 + rnd.IntN(30), 100 + rnd.IntN(100)}[rnd.IntN(2)]
	if w.fault == clockSkew || rnd.IntN(8) == 0 {
		w.saleEnd = 50 + rnd.IntN(60)
	}
	w.harder = seed%harderOf < harderOf/4
	w.drawFeatures(rand.New(rand.NewPCG(seed, 0xfea7)))
	w.requeues = rand.New(rand.NewPCG(seed, requeueSalt)).IntN(4) == 0
	w.current = w.newServer()
	w.broker.up = true
	for range 1 + rnd.IntN(2) {
		w.broker.queues = append(w.broker.queues, &queue{})
	}
	w.db = &mysql{
		w: w, up: true, session: 1, bySn: map[[2]int]*row{},
		holdings: map[[2]int]int{}, barriers: map[[2]int]bool{},
	}
	for range w.nGoods {
		stock := 2 + rnd.IntN(4)
		row := goodsRow{stock: stock, total: stock, limit: 1 + rnd.IntN(3)}
		row.maxLimit = row.limit
		w.db.goods = append(w.db.goods, row)
	}
	if w.requeues {
		w.later(60+w.rnd.IntN(200), func() { w.db.repaired = true })
	}
	w.hosts()
	w.addClients()
	return w
}

// drawFeatures decides what a schedule has besides, by a generator of its own: schedules without a
// feature stay as they are.
func (w *world) drawFeatures(rnd *rand.Rand) {
	w.stagesInSteps, w.changes = rnd.IntN(4) == 0, rnd.IntN(4) == 0
	if rnd.IntN(4) == 0 {
		w.clockStep = []int{-hour, -smallStep, smallStep, hour}[rnd.IntN(4)]
	}
	w.drifts = w.harder && rnd.IntN(4) == 0
}

// drawDrift draws by how many percent a clock is fast.
func (w *world) drawDrift() int {
	if !w.drifts {
		return 0
	}
	return w.rnd.IntN(2*mostDrift+1) - mostDrift
}

func (w *world) hosts() {
	for i := range 2 {
		h := &host{name: fmt.Sprint("api", i), boot: func(*host) {}}
		h.oldRelease = i == 1 && (w.rnd.IntN(4) == 0 || w.omits(LeaseInEveryRelease))
		w.apis = append(w.apis, h)
		w.start(h)
	}
	for i := range 1 + min(1, w.rnd.IntN(3)) {
		h := &host{
			name: fmt.Sprint("worker", i), boot: w.bootWorker, skew: hour, drift: w.drawDrift(),
		}
		w.workers = append(w.workers, h)
		w.start(h)
	}
	for g := range w.nGoods {
		w.later(w.rnd.IntN(10), func() { w.createSale(g) })
		if w.changes {
			w.addMerchant(g)
		}
	}
}

func (w *world) start(h *host) {
	h.alive, h.redis = true, w.current
	w.waiting[h], w.epochs[h] = make([][]*client, w.nGoods), make([]int, w.nGoods)
	h.boot(h)
}

func (w *world) bootWorker(h *host) {
	for _, q := range w.broker.queues {
		w.spawn(h, w.rnd.IntN(5), func(p *proc) { w.consume(p, q) })
	}
	w.spawn(h, w.rnd.IntN(5), w.runRelay)
	w.spawn(h, w.rnd.IntN(10), w.runReleaser)
	w.spawn(h, w.rnd.IntN(10), w.runExpirer)
	if w.failsOver {
		w.spawn(h, w.rnd.IntN(10), w.runRenewer)
	}
	w.spawn(h, w.rnd.IntN(10), w.runAdopter)
	w.spawn(h, w.rnd.IntN(10), w.runReconciler)
	w.spawn(h, 5+w.rnd.IntN(10), w.runRebuilder)
	if w.changes {
		w.spawn(h, w.rnd.IntN(10), w.runSyncer)
	}
}

// Run runs one schedule, and returns the guarantee that it violates, or nil.
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
			w.checkInvariants()
		}
		if n%32 == 0 && w.healed && w.drained() {
			w.checkDrained()
			break
		}
		if w.healed && w.now > w.healedAt+w.patience() || n > 200_000 {
			w.violated("G4", "not drained: %s", w.undrained())
		}
	}
	if w.err != nil {
		w.err.Seed, w.err.Trace = seed, w.trace
	}
	return w.err
}

// patience is the time in ticks to drain after the fault has ended. An order of which MySQL refused
// every row is published again when its age is twice what it was the last time.
func (w *world) patience() int {
	if w.requeues {
		return 3000
	}
	return 1500
}
