package ratelimit

import "math"

// warmEngine is Guava's SmoothWarmingUp. Idle time stores permits. Stored permits above
// the threshold are granted more slowly, up to coldFactor times, along a line. Like
// Guava it computes in doubles and truncates each wait to whole µs.
//
// Source: com.google.common.util.concurrent.SmoothRateLimiter.
type warmEngine struct {
	params                                 *Params
	stable, slope, threshold, most, stored float64
	nextFree, writtenAt                    int64
}

func newWarmEngine(t *Params, now int64) *warmEngine {
	e := &warmEngine{nextFree: now, writtenAt: now}
	e.shape(t)
	e.stored = e.most // a new one is cold
	return e
}

// shape computes the line. The area of the trapezoid below it, over the stored permits
// above the threshold, is the warm-up period.
func (e *warmEngine) shape(t *Params) {
	e.params = t
	warmup := float64(t.Free)
	e.stable = float64(t.Cost) / float64(t.Scale)
	cold := e.stable * t.limit.Value().ColdFactor
	e.threshold = warmup / e.stable / 2
	e.most = e.threshold + 2*warmup/(e.stable+cold)
	e.slope = 0
	if e.most > e.threshold {
		e.slope = (cold - e.stable) / (e.most - e.threshold)
	}
}

// use changes the params and keeps the share of the stored permits.
func (e *warmEngine) use(t *Params, now int64) {
	if *e.params == *t {
		return
	}
	e.settle(now)
	share := 0.0
	if e.most > 0 {
		share = e.stored / e.most
	}
	e.shape(t)
	e.stored = share * e.most
}

// settle stores the permits that accumulated since the last request was paid for.
func (e *warmEngine) settle(now int64) {
	if e.writtenAt-now > backStep {
		e.nextFree -= e.writtenAt - now
	}
	e.writtenAt = now
	if now <= e.nextFree {
		return
	}
	if e.most > 0 {
		e.stored = min(e.most, e.stored+float64(now-e.nextFree)/e.perStored())
	}
	e.nextFree = now
}

// perStored is the idle time in µs that stores one permit.
func (e *warmEngine) perStored() float64 { return float64(e.params.Free) / e.most }

func (e *warmEngine) decide(t *Params, now int64, a ask) answer {
	e.use(t, now)
	e.settle(now)
	wait := max(0, e.nextFree-now)
	longest := min(a.wait, e.params.limit.Value().MaxWaitMillis*1000)
	if never := a.n > e.params.MaxPermits; never || wait > longest {
		return e.status(now).denied(never, wait-longest)
	}
	spend := min(float64(a.n), e.stored)
	e.nextFree += e.slow(spend) + int64((float64(a.n)-spend)*e.stable)
	e.stored -= spend
	d := e.status(now).granting(a.n)
	d.wait = wait
	return d
}

// slow is the time in µs that stored permits cost: the area under the line, from the
// cold end.
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

func (e *warmEngine) status(now int64) answer {
	e.settle(now)
	var d answer
	ahead := max(0, e.nextFree-now)
	if ahead == 0 {
		d.remaining = max(1, int64(e.stored))
	}
	cold := 0.0
	if e.most > 0 {
		cold = (e.most - e.stored) * e.perStored()
	}
	d.reset = int64(math.Ceil(cold)) + ahead
	return d
}

// refund reduces the debt at the stable rate, but not below what is already paid, and not after
// later permits were taken.
func (e *warmEngine) refund(t *Params, now, fullAt, n int64) {
	e.use(t, now)
	if now+e.status(now).reset != fullAt {
		return
	}
	e.nextFree = max(min(e.nextFree, now), e.nextFree-int64(float64(n)*e.stable))
}
