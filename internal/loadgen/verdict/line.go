package verdict

import (
	"cmp"
	"context"
	"slices"
	"time"

	"flashsale.dev/seckill/internal/loadgen"
	"flashsale.dev/seckill/internal/loadgen/apiclient"
	"flashsale.dev/seckill/internal/loadgen/buyer"
	"flashsale.dev/seckill/internal/waitingroom"
)

// The rules of a waiting room.
const (
	ruleDraw   = "every position follows from the published draw, and no number was given twice"
	ruleOrder  = "buyers were admitted in the order of their positions"
	ruleInVain = "no buyer was admitted in vain"
	ruleIdle   = "a returned unit was offered in time"
	ruleUnsold = "no unit was left while somebody waited"
)

// Line is what the verdict measured of a waiting room.
type Line struct {
	Places   int `json:"places"`
	Admitted int `json:"admitted"` // buyers who saw that their turn had come
	// Unseen counts the buyers who were admitted, and did not read it before their turn was over.
	Unseen   int `json:"unseen"`
	Returned int `json:"returned"` // units that were offered again
	// ReturnP99 and ReturnMax are the times in ms from a returned unit to the next admission.
	ReturnP99 float64 `json:"returnP99"`
	ReturnMax float64 `json:"returnMax"`
	// Slow counts the buyers who tried to buy in the last moments of their turn, and were refused
	// after it.
	Slow int           `json:"slow"`
	life time.Duration // of an admission, in the public status; 0 if it has none
}

// checkLine checks the fairness of a waiting room. It compares times of the generator's clock with
// the API's, so both hosts' clocks must agree.
func (j *checker) checkLine(ctx context.Context, all []listedOrder) {
	places := j.Result.Places
	slices.SortFunc(places, func(a, b loadgen.Place) int {
		return cmp.Compare(a.Position, b.Position)
	})
	j.Line.Places = len(places)
	j.checkDraw(ctx, places)
	j.checkTurns(places)
	if j.Exclusive && j.Limit == 1 {
		var sale struct {
			Rate apiclient.Rate `json:"rate"`
		}
		read := apiclient.ReadInto("the sale's rate", &sale)
		if err := read(j.Merchant.API().ShowOwnSale(ctx, j.Plan.GoodsID)); err != nil {
			j.addDifference(ruleRead, "%v", err)
		} else {
			j.measureReturns(places, all, sale.Rate)
		}
	}
	if j.Exclusive && !j.CutShort {
		j.checkUnsold(places)
	}
}

// checkUnsold finds buyers who waited to the end although units are left.
func (j *checker) checkUnsold(places []loadgen.Place) {
	if j.Ledger.Available == 0 {
		return
	}
	for _, p := range places {
		if p.State == "over" || p.State == "waiting" {
			j.addDifference(ruleUnsold,
				"buyer %d waited at position %d to the end, and %d units are left",
				p.BuyerID, p.Position, j.Ledger.Available)
		}
	}
}

// checkDraw recomputes every position from public data.
func (j *checker) checkDraw(ctx context.Context, places []loadgen.Place) {
	numbers, known := map[int64]int64{}, make([]waitingroom.Place, 0, len(places))
	for _, p := range places {
		if other, twice := numbers[p.Number]; twice {
			j.addDifference(ruleDraw, "buyers %d and %d have number %d", other, p.BuyerID, p.Number)
		}
		numbers[p.Number] = p.BuyerID
		if p.Position > 0 {
			known = append(known, waitingroom.Place{Number: p.Number, Position: p.Position})
		}
	}
	public, err := buyer.ReadLine(ctx, j.Merchant, j.Plan.GoodsID)
	if err != nil {
		j.addDifference(ruleRead, "the waiting room: %v", err)
		return
	}
	if public.AdmissionSeconds > 0 {
		j.Line.life = time.Duration(public.AdmissionSeconds * float64(time.Second))
	}
	if public.Commitment != j.Result.Commitment {
		j.addDifference(ruleDraw, "the commitment changed from %s to %s", j.Result.Commitment,
			public.Commitment)
	}
	if j.CutShort && public.Seed == "" && len(known) == 0 {
		return // the load ended before the draw
	}
	wrong, err := waitingroom.Verify(public.Published, known)
	if err != nil {
		j.addDifference(ruleDraw, "%v", err)
	}
	for _, m := range wrong {
		j.addDifference(ruleDraw, "number %d got position %d, and the draw says %d", m.Number,
			m.Position, m.Drawn)
	}
}

// checkTurns checks the admissions, in the order of the positions.
func (j *checker) checkTurns(places []loadgen.Place) {
	var last loadgen.Place // that was admitted
	var passed []loadgen.Place
	life := cmp.Or(j.Line.life, turnOf(places))
	// The slowest reading of a place is part of the time in which a buyer may miss its turn.
	reading := time.Duration(j.Result.Of(buyer.StepPlace).Max * float64(time.Millisecond))
	for _, p := range places {
		switch {
		case p.Position == 0:
			continue
		case !p.Seen.IsZero():
			j.Line.Admitted++
			if p.Until.Before(last.Until) {
				j.addDifference(ruleOrder, "position %d was admitted before position %d",
					p.Position, last.Position)
			}
			for _, w := range passed {
				j.addDifference(ruleOrder, "position %d was passed by position %d: %s", w.Position,
					p.Position, w.State)
			}
			last, passed = p, nil
		case p.State == "missed":
			j.Line.Unseen++
			if life == 0 || p.Habit.CannotMiss(life, reading) {
				j.addDifference(ruleOrder,
					"position %d was passed: it never read that its turn had come", p.Position)
			}
		case p.Outcome != buyer.GaveUp:
			passed = append(passed, p)
		}
		switch tried, inVain := j.triedInVain(p); {
		case tried && !inVain:
			j.Line.Slow++
		case inVain:
			j.addDifference(ruleInVain, "buyer %d, position %d: %s, and tried with %s left",
				p.BuyerID, p.Position, p.Outcome, p.Until.Sub(p.Tried))
		}
	}
}

// purchaseTime bounds the time in which the two calls of a purchase must be done. A purchase that
// begins longer before the end of the turn is in time, however slow the API is.
const purchaseTime = 250 * time.Millisecond

// triedInVain reports whether a buyer tried to buy during its turn and got no unit, and whether the
// buyer was in time. A refusal within the turn always counts.
func (j *checker) triedInVain(p loadgen.Place) (tried, inVain bool) {
	if j.CutShort || p.Seen.IsZero() || !p.Habit.Buys() || p.Outcome == buyer.Won ||
		!p.Tried.Before(p.Until) {
		return false, false
	}
	refused := !p.Decided.IsZero() && p.Decided.Before(p.Until)
	return true, refused || p.Tried.Add(purchaseTime).Before(p.Until)
}

// turnOf returns the longest time that was left of an admission when its buyer saw it; 0 if nobody
// saw one. The admission that was seen first has nearly its whole life left.
func turnOf(places []loadgen.Place) (life time.Duration) {
	for _, p := range places {
		if !p.Seen.IsZero() {
			life = max(life, p.Until.Sub(p.Seen))
		}
	}
	return life
}

// call is one admission: the time at which the line called a buyer, and when that buyer had joined.
type call struct{ at, joined time.Time }

// measureReturns measures the time from each returned unit to the next admission. The first
// admissions take the units that were on sale; each later one follows from a unit that returned.
// The delay counts from the moment at which the unit, a permit of the rate and the next buyer were
// there.
func (j *checker) measureReturns(places []loadgen.Place, all []listedOrder, rate apiclient.Rate) {
	calls, returned := callsOf(places, all, cmp.Or(j.Line.life, turnOf(places)))
	var delays []time.Duration
	permits := waitingroom.Room{
		PermitsPerSecond: rate.PermitsPerSecond,
		Burst:            time.Duration(rate.MaxBurstSeconds * float64(time.Second)),
	}
	for n, c := range calls {
		permit := permits.Paid.Add(permits.ETA(permits.Admitted + 1))
		permits = permits.Admit(c.at, 1)
		i := n - int(j.Ledger.Total)
		if i < 0 {
			continue
		}
		if i >= len(returned) {
			if !j.CutShort {
				j.addDifference(ruleInVain, "%d admissions for %d units and %d that returned",
					len(calls), j.Ledger.Total, len(returned))
			}
			break
		}
		possible := slices.MaxFunc([]time.Time{returned[i], permit, c.joined}, time.Time.Compare)
		delay := c.at.Sub(possible)
		delays = append(delays, max(0, delay))
		if delay > j.Plan.Room.Within {
			j.addDifference(ruleIdle, "a unit that could be offered at %s was offered %s later",
				possible, delay)
		}
	}
	if slices.Sort(delays); len(delays) > 0 {
		ms := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
		j.Line.Returned = len(delays)
		j.Line.ReturnP99, j.Line.ReturnMax = ms(delays[len(delays)*99/100]), ms(delays[len(delays)-1])
	}
}

// callsOf returns the admissions in the order of their times. It also returns, in ascending order,
// when units returned from those that did not end in an active order. life is that of an admission.
func callsOf(
	places []loadgen.Place, all []listedOrder, life time.Duration,
) (calls []call, returned []time.Time) {
	closed := map[string]time.Time{}
	for _, o := range all {
		if o.active() == 0 {
			closed[o.OrderSn] = o.ClosedAt
		}
	}
	for _, p := range places {
		if p.Seen.IsZero() {
			if p.State == "missed" && len(calls) > 0 {
				at := calls[len(calls)-1].at // its own call was not seen
				calls, returned = append(calls, call{at, p.Joined}), append(returned, at.Add(life))
			}
			continue
		}
		calls = append(calls, call{p.Until.Add(-life), p.Joined})
		switch {
		case !p.Left.IsZero():
			returned = append(returned, p.Left)
		case p.Outcome != buyer.Won:
			returned = append(returned, p.Until)
		case !closed[p.OrderSn].IsZero():
			returned = append(returned, closed[p.OrderSn])
		}
	}
	slices.SortStableFunc(calls, func(a, b call) int { return a.at.Compare(b.at) })
	slices.SortFunc(returned, time.Time.Compare)
	return calls, returned
}
