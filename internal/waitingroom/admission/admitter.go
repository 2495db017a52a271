package admission

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/waitingroom"
	"flashsale.dev/seckill/internal/workers"
)

// Admitter moves the lines of all sales that have one. Several processes may run an Admitter: a
// script moves a line only from the position that its caller expects, so that concurrent calls do
// the work of one. An Admitter keeps nothing that Redis and MySQL lack.
type Admitter struct {
	// Lines lists the exposed sales that have a line.
	Lines func() []seckill.Sale
	Redis Redis
	Store Store
	// Life is how long an admission lasts that is not used.
	Life time.Duration
	// PaymentTimeout is for how long an order may be unpaid.
	PaymentTimeout time.Duration
	// Moved receives the state of a ready room after each step, also if the draw or the call
	// failed; may be nil.
	Moved func(sale seckill.Sale, s State)
	Log   *slog.Logger

	lines map[int64]*line // of the goods; Run's goroutine alone uses the map
}

const (
	admitInterval = 100 * time.Millisecond
	// saveInterval is the time between two saves of a line that stands still, and between two steps
	// in which nobody can be called. It is a second less half a tick, because a tick may be early.
	saveInterval  = time.Second - admitInterval/2
	endedInterval = 10 * time.Second // between two steps of a line that has ended
	// failedPause is the time without MySQL after it failed.
	failedPause = 2 * time.Second
	// stepDeadline bounds a step and a save; a line that another master serves does not wait for
	// it.
	stepDeadline = 2 * time.Second
	// spareNumbers is how many granted numbers an Admitter keeps ahead of the buyers who join.
	spareNumbers = grantSize / 2
	// maxCalls bounds the numbers of one script call.
	maxCalls = 256
)

// line is what an Admitter remembers of a sale. The line moves while MySQL saves it, so each of the
// two has a lock.
type line struct {
	moving sync.Mutex // held by a step; guards the fields up to the next lock
	lastDraw
	stepped time.Time     // when Redis answered last
	ended   time.Time     // the end of the sale that Redis' clock had passed then; zero before
	joined  int64         // before the last step
	quiet   time.Duration // for which nobody can be called since

	keeping   sync.Mutex // held while MySQL keeps the line; guards the rest
	saves     spacing
	saved     State     // the state that was saved last
	published spacing   // of the calls of publish
	failed    time.Time // when MySQL failed last
}

// spacing bounds the share of the time that repeated work takes.
type spacing struct {
	ended time.Time
	took  time.Duration
}

// do calls work if an interval has passed since the last call ended, and a multiple of the time
// that it took. Work has the deadline of a step: a process that took longer was suspended.
func (p *spacing) do(interval time.Duration, times time.Duration, work func() error) error {
	if time.Since(p.ended) < max(interval, times*p.took) {
		return nil
	}
	began := time.Now()
	err := work()
	p.ended, p.took = time.Now(), min(time.Since(began), stepDeadline)
	return err
}

// pauses reports whether a line needs no step now. Redis' clock alone decides about the end of a
// sale, and may be set back.
func (l *line) pauses(sale seckill.Sale) bool {
	return time.Since(l.stepped) < l.quiet ||
		l.ended.Equal(sale.EndAt) && time.Since(l.stepped) < endedInterval
}

// quietFor is for how long nobody of a line can be called: until the start, or while nobody is in
// line, or no unit is left and none is promised. A platform has many such lines at the same time. A
// buyer who joins, or a unit that returns, waits for the next step, a second at most. A line that
// grows is never quiet: if a rush uses up the granted numbers, buyers wait while a node asks MySQL.
// A line with gaps is never empty: a buyer who shows a ticket from a gap waits although every
// number was called. One step a second would then use fewer permits than the rate has.
func quietFor(sale seckill.Sale, s State, joined int64) time.Duration {
	if s.Joined != joined {
		return 0
	}
	if early := sale.StartAt.Sub(s.Now); early > 0 {
		return min(early, saveInterval)
	}
	if s.Admitted >= s.Joined && len(s.Gaps) == 0 || s.Available+s.Called == 0 {
		return saveInterval
	}
	return 0
}

// Run works until ctx ends.
func (a *Admitter) Run(ctx context.Context) error {
	a.lines = make(map[int64]*line)
	var steps sync.WaitGroup
	defer steps.Wait()
	return workers.Every(ctx, admitInterval, func(ctx context.Context) {
		listed := make(map[int64]*line, len(a.lines))
		for _, sale := range a.Lines() {
			l := a.lines[sale.GoodsID]
			if l == nil {
				l = &line{}
			}
			if listed[sale.GoodsID] = l; !l.moving.TryLock() {
				continue
			}
			if l.pauses(sale) {
				l.moving.Unlock()
				continue
			}
			steps.Go(func() { a.stepAndKeep(ctx, sale, l) })
		}
		a.lines = listed
	})
}

// stepAndKeep moves a line whose lock is held, and then keeps it. A slow MySQL would otherwise
// delay the offer of the next unit that returns.
func (a *Admitter) stepAndKeep(ctx context.Context, sale seckill.Sale, l *line) {
	var state State
	a.within(ctx, sale.GoodsID, "cannot move a line, retrying",
		func(ctx context.Context) (err error) {
			defer l.moving.Unlock()
			state, err = a.step(ctx, sale, l)
			return err
		})
	if !state.Ready() || !l.keeping.TryLock() {
		return
	}
	a.within(ctx, sale.GoodsID, "cannot save a line, retrying",
		func(ctx context.Context) error {
			defer l.keeping.Unlock()
			return a.keep(ctx, sale.GoodsID, l, state)
		})
}

// within runs work with the deadline of a step and logs its error.
func (a *Admitter) within(
	ctx context.Context, goodsID int64, failure string, work func(context.Context) error,
) {
	limited, cancel := context.WithTimeout(ctx, stepDeadline)
	defer cancel()
	workers.Warn(ctx, a.Log, failure, work(limited), "goods_id", goodsID)
}

// step moves a line as far as possible. It returns the state to keep; the zero State if a call
// failed or the room is not ready.
func (a *Admitter) step(ctx context.Context, sale seckill.Sale, l *line) (State, error) {
	state, err := a.Redis.Room(ctx, sale.GoodsID)
	if err != nil {
		return State{}, err
	}
	l.stepped, l.ended, l.quiet = time.Now(), time.Time{}, 0
	if !state.Now.Before(sale.EndAt) {
		l.ended = sale.EndAt
	}
	if state.Gate == seckill.GateOpen && !state.Ready() {
		state, err = prepare(ctx, a.Store, a.Redis, sale.GoodsID, state)
	}
	if err != nil || !state.Ready() {
		return State{}, err
	}
	if state.DrawSize != NotDrawn && state.Seed == "" {
		state, err = a.drawOnce(ctx, sale.GoodsID, state)
	}
	if err == nil {
		var called State
		if called, err = a.call(ctx, sale, l, state); err == nil {
			l.quiet = quietFor(sale, called, l.joined)
			state, l.joined = called, called.Joined
		}
	}
	if a.Moved != nil && state.Ready() {
		a.Moved(sale, state)
	}
	if err != nil {
		return State{}, err
	}
	return state, nil
}

// keep has numbers granted before they are used up, saves the line, and publishes what may return.
// A line that moved is saved at once. After a loss of Redis, an admission that was not saved is
// repeated. One that was used since the last save holds a unit until it lapses. A busy sale has
// many unpaid orders, and reading them must not be most of MySQL's work. After a failure MySQL is
// left alone for a moment.
func (a *Admitter) keep(ctx context.Context, goodsID int64, l *line, state State) (err error) {
	if time.Since(l.failed) < failedPause {
		return nil
	}
	defer func() {
		if err != nil {
			l.failed = time.Now()
		}
	}()
	if state.Granted-state.Joined < spareNumbers {
		if err := grant(ctx, a.Store, a.Redis, goodsID, state); err != nil {
			return err
		}
	}
	interval := saveInterval
	if state.Admitted != l.saved.Admitted || state.Called != l.saved.Called {
		interval = 0
	}
	if err := l.saves.do(interval, 5, func() error {
		err := a.save(ctx, goodsID, state)
		if err == nil {
			l.saved = state
		}
		return err
	}); err != nil {
		return err
	}
	return l.published.do(saveInterval, 20, func() error { return a.publish(ctx, goodsID, state) })
}

// drawOnce fixes the draw in MySQL and then publishes the seed. In this order a failover between
// the two repeats the draw with the same numbers.
func (a *Admitter) drawOnce(ctx context.Context, goodsID int64, state State) (State, error) {
	record, err := a.Store.Draw(ctx, goodsID, state.Lease, state.DrawSize, state.Digest)
	if err != nil || record.Lease != state.Lease || record.DrawSize == NotDrawn {
		return state, err
	}
	if err := a.Redis.SetSeed(ctx, goodsID, state.Lease, record.Seed); err != nil {
		return state, err
	}
	a.Log.InfoContext(ctx, "waiting room drawn", "goods_id", goodsID, "size", record.DrawSize)
	return a.Redis.Room(ctx, goodsID)
}

// call ends admissions and calls the next in line, until the stock, the rate or the line ends.
func (a *Admitter) call(
	ctx context.Context, sale seckill.Sale, l *line, state State,
) (State, error) {
	draw, err := l.of(state)
	if err != nil {
		return state, err
	}
	for {
		c := Call{Admitted: state.Admitted, Life: a.Life}
		if draw != nil {
			c.Numbers = nextNumbers(draw, sale.PerBuyerLimit, state)
		}
		after, err := a.Redis.Admit(ctx, sale.GoodsID, c)
		if err != nil || !after.Ready() {
			return after, err
		}
		moved := after.Admitted - state.Admitted
		if moved < int64(len(c.Numbers)) || moved == 0 {
			return after, nil
		}
		state = after
	}
}

// nextNumbers returns the numbers that the script may call next: as many as the stock permits, and
// some more in case that buyers have left.
func nextNumbers(draw *waitingroom.Draw, perBuyerLimit int64, state State) []int64 {
	const more = 16
	if state.Available == 0 {
		return nil
	}
	n := min(maxCalls, max(0, state.Available/perBuyerLimit-state.Called)+more,
		state.Joined-state.Admitted)
	numbers := make([]int64, max(0, n))
	for i := range numbers {
		numbers[i] = draw.Number(state.Admitted + 1 + int64(i))
	}
	return numbers
}

// save saves the progress of a line.
func (a *Admitter) save(ctx context.Context, goodsID int64, state State) error {
	turns, err := a.Redis.Turns(ctx, goodsID, state)
	if err != nil {
		return err
	}
	return a.Store.SaveRoom(ctx, goodsID, state.Lease, Record{
		Joined: state.Joined, Admitted: state.Admitted, Turns: turns, Calls: state.Calls,
		Digest: state.Digest,
	})
}

// publish publishes what may return. MySQL is read after Redis: an order that is not pending any
// more then counts as held or as sold.
func (a *Admitter) publish(ctx context.Context, goodsID int64, state State) error {
	held, err := a.Store.HeldUnits(ctx, goodsID)
	if err != nil {
		return err
	}
	if held.Units += state.Pending; state.Pending > 0 {
		held.Until = state.Now.Add(a.PaymentTimeout)
	}
	over := state.Seed != "" && state.Available == 0 && state.Called == 0 && held.Units == 0 &&
		held.Stock == 0
	return a.Redis.SetHeld(ctx, goodsID, state.Lease, held, over)
}
