package capacity

import (
	"math"
	"time"
)

// Stage names a kind of request.
type Stage string

// The stages, in the order in which a buyer meets them.
const (
	Pages     Stage = "GET /sales/{goodsId}"
	Limited   Stage = "POST /randomPath, told to wait"
	Refused   Stage = "POST /randomPath, sold out"
	Paths     Stage = "POST /randomPath, a path"
	Held      Stage = "POST /{path}/decrStock, come again"
	Lost      Stage = "POST /{path}/decrStock, sold out"
	Purchases Stage = "POST /{path}/decrStock, queued"
	Queued    Stage = "GET /orders/{orderSn}, queued"
	Looks     Stage = "GET /orders/{orderSn}, written"
	Streams   Stage = "GET /orders/{orderSn}/events"
	Written   Stage = "orders written"
)

// stages lists them.
func stages() []Stage {
	return []Stage{Pages, Limited, Refused, Paths, Held, Lost, Purchases, Queued, Looks, Streams, Written}
}

// flow is what happens in each step of time: how many requests of each stage, and how many orders are not written at its end.
type flow struct {
	step    float64 // seconds
	of      map[Stage][]float64
	backlog []float64
	gaveUp  float64
	unsold  float64
	soldOut float64 // when, in seconds; -1 if never
	lastRow float64 // when the last order was in MySQL
}

// steps of a flow: enough that a step is short beside everything that happens, few enough to be quick.
const (
	mostSteps = 4000
	retryWait = 1.0 // seconds: Retry-After is whole, and at least 1
)

// river is a flow as it is being worked out.
type river struct {
	Sale
	flow
	avail, tokens, backlogNow, writes float64
	due                               map[int]float64 // purchases by step
	again                             []map[int]float64
	end                               int // the step after which nobody comes any more
	first                             int // the step in which the first buyer presses
}

// run lets the crowd flow; writes is how many orders the writer of one goods takes in a second.
func run(s Sale, writes float64) flow {
	r := newRiver(s, writes)
	for k := 0; k < len(r.backlog) && (k <= r.end || r.busy(k)); k++ {
		r.press(k)
		r.buy(k)
		r.write(k)
	}
	r.unsold = r.avail
	r.cut()
	return r.flow
}

func newRiver(s Sale, writes float64) *river {
	lead := s.Polls * PollEvery.Seconds()
	coming := s.length()
	// Paths are limited: the sale lasts for as long as permits, and the writer where it is the slower, need for the units.
	orders := math.Min(float64(s.Units)/float64(s.Quantity), float64(s.Buyers))
	horizon := lead + coming + float64(s.Retries+1)*retryWait + s.Think.Seconds() + s.Wait.Seconds() + 2*orders/writes + 5
	r := &river{Sale: s, avail: float64(s.Units), tokens: s.Permits * s.Burst.Seconds(), writes: writes, due: map[int]float64{}}
	r.step = min(max(horizon/mostSteps, 0.001), 1)
	n := int(horizon/r.step) + 1
	r.of, r.soldOut = make(map[Stage][]float64), -1
	for _, stage := range stages() {
		r.of[stage] = make([]float64, n)
	}
	r.backlog, r.first = make([]float64, n), int(lead/r.step)
	r.again = make([]map[int]float64, s.Retries+1)
	for i := range r.again {
		r.again[i] = map[int]float64{}
	}
	r.arrive(coming)
	return r
}

// length is the time in which the buyers come, in seconds.
func (s Sale) length() float64 {
	switch s.Shape {
	case AtOnce:
		return s.Budget.Seconds()
	case Normal:
		return s.Over.Seconds() * 6 / 3.92 // three deviations each way, where Over is 1.96
	}
	return s.Over.Seconds()
}

// by is the share of the buyers who have come when a share x of the length has passed.
func (s Sale) by(x float64) float64 {
	x = min(max(x, 0), 1)
	switch s.Shape {
	case Ramp:
		return x * x
	case Given:
		return s.given(x)
	case Normal:
		below := func(z float64) float64 { return math.Erfc(-z/math.Sqrt2) / 2 }
		return (below(6*x-3) - below(-3)) / (1 - 2*below(-3))
	}
	return x
}

// given is by of a list.
func (s Sale) given(x float64) float64 {
	before, all := 0.0, sum(s.Come)
	whole, part := math.Modf(x * float64(len(s.Come)))
	for i, n := range s.Come {
		switch {
		case i < int(whole):
			before += n
		case i == int(whole):
			before += n * part
		}
	}
	return before / all
}

// arrive puts every buyer's press, and the looks at the page before it, into their steps.
func (r *river) arrive(length float64) {
	steps := max(1, int(math.Ceil(length/r.step)))
	r.end = r.first + steps
	for i := range steps {
		come := float64(r.Buyers) * (r.by(float64(i+1)/float64(steps)) - r.by(float64(i)/float64(steps)))
		r.again[0][r.first+i] = come
		for poll := 1.0; poll <= math.Ceil(r.Polls); poll++ {
			share := min(1, r.Polls-poll+1)
			at := r.first + i - int(poll*PollEvery.Seconds()/r.step)
			r.of[Pages][max(0, at)] += come * share
		}
	}
}

// press is POST /randomPath of all who come in a step.
func (r *river) press(k int) {
	most := r.Permits * r.Burst.Seconds()
	r.tokens = min(most, r.tokens+r.Permits*r.step)
	for turn := len(r.again) - 1; turn >= 0; turn-- { // who comes again has waited longest
		come := r.again[turn][k]
		if come == 0 {
			continue
		}
		delete(r.again[turn], k)
		if r.avail <= 0 {
			r.of[Refused][k] += come
			continue
		}
		given := min(come, max(0, r.tokens+r.Permits*r.Wait.Seconds()))
		r.tokens -= given
		r.of[Paths][k] += given
		wait := max(0, -r.tokens/r.Permits) + r.Think.Seconds()
		r.due[k+int(wait/r.step)] += given
		r.wait(k, turn, come-given)
	}
}

// wait sends those who were told to wait home, or back a second later.
func (r *river) wait(k, turn int, many float64) {
	if many <= 0 {
		return
	}
	r.of[Limited][k] += many
	if turn+1 >= len(r.again) {
		r.gaveUp += many
		return
	}
	at := k + int(retryWait/r.step)
	r.again[turn+1][at] += many
	r.end = max(r.end, at)
}

// buy is decrStock of all whose time has come. Beyond a backlog of BacklogAge nothing is promised: they ask again with the same path.
func (r *river) buy(k int) {
	come := r.due[k]
	if come == 0 {
		return
	}
	delete(r.due, k)
	taken := min(come, r.avail/float64(r.Quantity))
	if r.Land.BacklogAge > 0 {
		taken = min(taken, max(0, r.writes*(r.Land.BacklogAge.Seconds()+r.step)-r.backlogNow))
	}
	r.avail = max(0, r.avail-taken*float64(r.Quantity))
	if r.avail < 0.5 {
		r.avail = 0
		if r.soldOut < 0 {
			r.soldOut = float64(k-r.first) * r.step
		}
	}
	r.of[Purchases][k] += taken
	r.of[Looks][k] += taken * (1 - r.Streams) * min(1, r.Looks) // the last look finds it written
	r.of[Queued][k] += taken * (1 - r.Streams) * max(0, r.Looks-1)
	r.of[Streams][k] += taken * r.Streams
	r.backlogNow += taken
	switch rest := come - taken; {
	case rest <= 0:
	case r.avail > 0:
		at := k + max(1, int(retryWait/r.step))
		r.due[at] += rest
		r.of[Held][k] += rest
	default:
		r.of[Lost][k] += rest
	}
}

// write takes from the backlog what the writer can.
func (r *river) write(k int) {
	written := min(r.backlogNow, r.writes*r.step)
	r.backlogNow -= written
	r.of[Written][k], r.backlog[k] = written, r.backlogNow
	if written > 0 {
		r.lastRow = float64(k+1-r.first) * r.step
	}
}

func (r *river) busy(k int) bool {
	if r.backlogNow > 0.5 || len(r.due) > 0 {
		return true
	}
	for _, turn := range r.again {
		if len(turn) > 0 {
			return true
		}
	}
	return k < r.first
}

// cut forgets the steps after the last in which something happened.
func (r *river) cut() {
	last := 0
	for _, list := range r.of {
		for k := len(list) - 1; k > last; k-- {
			if list[k] > 0 {
				last = k
			}
		}
	}
	for stage, list := range r.of {
		r.of[stage] = list[:last+1]
	}
	r.backlog = r.backlog[:last+1]
}

// total adds up a stage.
func (f flow) total(stage Stage) (sum float64) {
	for _, n := range f.of[stage] {
		sum += n
	}
	return sum
}

// peak is the highest rate of a value each second, over windows of so long.
func (f flow) peak(each []float64, window time.Duration) float64 {
	width := max(1, int(math.Round(window.Seconds()/f.step)))
	sum, most := 0.0, 0.0
	for k, n := range each {
		sum += n
		if k >= width {
			sum -= each[k-width]
		}
		most = max(most, sum)
	}
	return most / (float64(width) * f.step)
}
