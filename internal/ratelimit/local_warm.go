package ratelimit

import (
	"math"
	"time"
)

// warmEngine is Guava's SmoothWarmingUp: idle permits pile up, and those beyond
// the threshold are handed out slower, up to coldFactor times, along a line.
// Like Guava's it computes in doubles and truncates each wait to whole µs.
//
// Source: com.google.common.util.concurrent.SmoothRateLimiter.
type warmEngine struct {
	terms                                  Terms
	stable, slope, threshold, most, stored float64
	nextFree, wrote                        int64
}

func newWarmEngine(t Terms, now int64) *warmEngine {
	e := &warmEngine{nextFree: now, wrote: now}
	e.shape(t)
	e.stored = e.most // a new one is cold
	return e
}

// shape draws the line: a trapezoid whose area over the stored permits is the
// warm-up period.
func (e *warmEngine) shape(t Terms) {
	e.terms = t
	warmup := float64(t.Free)
	e.stable = float64(t.Cost) / float64(t.Scale)
	cold := e.stable * t.limit.ColdFactor
	e.threshold = warmup / e.stable / 2
	e.most = e.threshold + 2*warmup/(e.stable+cold)
	e.slope = 0
	if e.most > e.threshold {
		e.slope = (cold - e.stable) / (e.most - e.threshold)
	}
}

func (e *warmEngine) set(t Terms, now int64) {
	e.settle(now)
	share := 0.0
	if e.most > 0 {
		share = e.stored / e.most
	}
	e.shape(t)
	e.stored = share * e.most
}

// settle piles up what has come in since the last booking was paid for.
func (e *warmEngine) settle(now int64) {
	if e.wrote-now > backStep {
		e.nextFree -= e.wrote - now
	}
	e.wrote = now
	if now <= e.nextFree {
		return
	}
	if e.most > 0 {
		e.stored = min(e.most, e.stored+float64(now-e.nextFree)/e.perStored())
	}
	e.nextFree = now
}

// perStored is the time in which one idle permit piles up.
func (e *warmEngine) perStored() float64 { return float64(e.terms.Free) / e.most }

func (e *warmEngine) decide(now int64, a ask) Decision {
	e.settle(now)
	wait := max(0, e.nextFree-now)
	longest := min(a.maxWait, e.terms.limit.MaxWaitMillis*1000)
	if wait > longest || a.n > e.terms.Most {
		d := e.described(now)
		d.Never = a.n > e.terms.Most
		if !d.Never {
			d.RetryAfter = micros(wait - longest)
		}
		return d
	}
	spend := min(float64(a.n), e.stored)
	e.nextFree += e.slow(spend) + int64((float64(a.n)-spend)*e.stable)
	e.stored -= spend
	d := e.described(now)
	d.Allowed, d.Granted, d.Wait = true, a.n, micros(wait)
	return d
}

// slow is the time that taking so many stored permits costs: the area under the
// line, from the cold end.
func (e *warmEngine) slow(take float64) int64 {
	above, cost := e.stored-e.threshold, int64(0)
	if above > 0 {
		sloped := min(above, take)
		height := 2*e.stable + e.slope*(above+above-sloped)
		cost = int64(sloped * height / 2)
		take -= sloped
	}
	return cost + int64(e.stable*take)
}

func (e *warmEngine) described(now int64) Decision {
	e.settle(now)
	var d Decision
	ahead := max(0, e.nextFree-now)
	if ahead == 0 {
		d.Remaining = max(1, int64(e.stored))
	}
	cold := 0.0
	if e.most > 0 {
		cold = (e.most - e.stored) * e.perStored()
	}
	d.ResetAfter = time.Duration(math.Ceil(cold))*time.Microsecond + micros(ahead)
	return d
}

// refund takes the debt back at the stable rate; what was paid is gone.
func (e *warmEngine) refund(now, _, n int64) {
	e.nextFree = max(min(e.nextFree, now), e.nextFree-int64(float64(n)*e.stable))
}

func (e *warmEngine) clone() engine { c := *e; return &c }
