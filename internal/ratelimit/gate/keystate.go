package gate

import (
	"sync"
	"time"

	"flashsale.dev/seckill/internal/ratelimit"
)

const (
	// maxDenial bounds how long a denial is cached, because refunds and changed
	// limits can end it early.
	maxDenial = time.Second
	// minRetry is the pause of a node after a denial of a lease or of several callers. Meanwhile
	// some permits accumulate.
	minRetry = 5 * time.Millisecond
	leaseTTL = time.Second
	// leaseGrowth: a call sooner than this after the last one requests twice as many permits.
	leaseGrowth = 100 * time.Millisecond
	// maxPermits bounds the permits of one call.
	maxPermits = 1000
)

// keyState is a node's cached state of one limiter in Redis. The table locks mu.
type keyState struct {
	mu     sync.Mutex
	params ratelimit.Params

	// The denial cache: requests are denied until then.
	denial     ratelimit.Decision
	until      time.Time
	retry      time.Time     // when the node can admit at the earliest
	deniedWait time.Duration // MaxWait of the denied request

	// The lease: permits in hand, good at last - (leased-1) × step, …, last.
	leased  int64
	last    time.Time
	step    time.Duration
	expires time.Time
	grant   ratelimit.Decision

	// The debt: permits admitted while Redis did not answer.
	owed       int64
	paying     int64 // of these, by calls in flight that take nothing else
	debtExpiry time.Time
	answeredAt time.Time // when Redis has last decided

	goneAt time.Time // until then Redis has the key

	call     *call // in flight, or nil
	waiting  int64 // callers that wait for it
	size     int64 // permits of the last call without its debt
	calledAt time.Time
}

// call is a call to Redis that the callers of one key share.
type call struct {
	done chan struct{}
	err  error // readable after done is closed
}

func (k *keyState) idle(now time.Time) bool {
	return k.call == nil && k.waiting == 0 && k.paying == 0 && k.debt(now) == 0 &&
		now.After(k.until) && now.After(k.goneAt) && (k.leased == 0 || now.After(k.expires))
}

// setParams drops what was cached under other parameters, except for the debt, whose permits stay
// taken. While callers with other parameters wait it changes nothing and returns false. Otherwise
// callers with two limits of one key would drop each other's permits again and again.
func (k *keyState) setParams(p *ratelimit.Params) bool {
	if k.params == *p {
		return true
	}
	if k.waiting > 0 {
		return false
	}
	k.params, k.until, k.leased, k.size = *p, time.Time{}, 0, 1
	return true
}

// mostDebt bounds the debts of all nodes together, in permits: their own burst, the one that Redis
// has accumulated meanwhile, and what callers wait for. In a longer outage the other permits of
// Redis expire unused, so charging for them would deny callers twice.
func (k *keyState) mostDebt() int64 { return max(1, (k.params.Free+k.params.Cap)/k.params.Cost) }

// shareOfDebt is the part of mostDebt that this node may owe.
func (k *keyState) shareOfDebt(nodes int64) int64 { return max(1, k.mostDebt()/max(1, nodes)) }

// mayOwe reports whether the node may admit n permits without Redis. It may not above its share if
// Redis has decided within the time in which a bucket fills up: no permit has expired there, so a
// permit that is not charged would be one too many. Windows have no debt.
func (k *keyState) mayOwe(now time.Time, n, nodes int64) bool {
	return !k.params.Kind.Accumulates() || k.debt(now)+n <= k.shareOfDebt(nodes) ||
		now.Sub(k.answeredAt) > k.params.TimeFor(k.params.Free/k.params.Cost)
}

// addDebt adds n permits that were admitted without Redis; a negative n subtracts refunded ones.
func (k *keyState) addDebt(now time.Time, n, nodes int64) {
	if !k.params.Kind.Accumulates() {
		return
	}
	k.owed = max(0, min(k.debt(now)+n, k.shareOfDebt(nodes)))
	k.debtExpiry = now.Add(k.params.TimeFor(k.mostDebt()))
}

// debt is the key's debt in permits. It expires when the bucket in Redis would be full again even
// if it had been charged at once.
func (k *keyState) debt(now time.Time) int64 {
	if now.After(k.debtExpiry) {
		return 0
	}
	return k.owed
}

// due is the part of the debt that no call in flight pays.
func (k *keyState) due(now time.Time) int64 { return max(0, k.debt(now)-k.paying) }

// cached denies by a cached denial, or admits one permit of the lease. Otherwise ok is false.
func (k *keyState) cached(
	now time.Time, req *ratelimit.Request, d *ratelimit.Decision,
) (event Event, ok bool) {
	// A caller that can wait longer than the denied one can be admitted sooner, and one that cannot
	// wait as long is admitted later.
	sooner := req.MaxWait - k.deniedWait
	if now.Before(k.until.Add(-max(0, sooner))) {
		*d = k.denial
		d.RetryAfter = max(time.Microsecond, k.retry.Add(-sooner).Sub(now))
		if d.Never {
			d.RetryAfter = 0
		}
		d.ResetAfter = max(0, d.ResetAfter-now.Sub(d.At))
		return EventDenialCache, true
	}
	if k.leased == 0 || now.After(k.expires) {
		return 0, false
	}
	reset := k.grant.ResetAfter - k.timeBehind(k.leased-1)
	wait := max(0, k.last.Add(-time.Duration(k.leased-1)*k.step).Sub(now))
	if wait > req.MaxWait {
		*d = ratelimit.Decision{RetryAfter: wait - req.MaxWait, ResetAfter: reset, At: now}
		return EventDenialCache, true
	}
	k.leased--
	*d = ratelimit.Decision{
		Allowed: true, Granted: 1, Wait: wait, Remaining: k.grant.Remaining + k.leased,
		ResetAfter: reset, At: k.grant.At,
	}
	return EventLease, true
}

// timeBehind is the time in which n permits accumulate that were granted behind another one. A lone
// permit is refunded as if they had not been granted.
func (k *keyState) timeBehind(n int64) time.Duration {
	if k.params.Kind != ratelimit.KindBucket {
		return 0
	}
	behind := k.params.TimeFor(n)
	if p := k.params; p.Scale > 1 && p.Cost < 2*p.Scale {
		behind += time.Microsecond // a mark that is late by a whole permit would name the next one
	}
	return behind
}

// callSize is how many permits a call requests: one for each waiting caller, the rest of a lease in
// advance, and the debt. The first caller's permit is a part of the lease.
func (k *keyState) callSize(now time.Time, lease int64) int64 {
	if now.Sub(k.calledAt) < leaseGrowth {
		k.size = min(max(1, k.size)*2, lease)
	} else {
		k.size = 1
	}
	k.calledAt = now
	return min(max(1, k.waiting)+k.size-1+k.due(now), maxPermits)
}

// update caches a decision of Redis. Granted permits pay the debt first. It returns the permits to
// refund: those beyond the lease and the waiting callers, or all if the limit has changed.
func (k *keyState) update(
	now time.Time, req ratelimit.Request, d ratelimit.Decision, lease int64,
) (surplus int64) {
	if d.Allowed {
		k.goneAt = now.Add(d.ResetAfter)
	}
	if k.params != req.Params {
		return d.Granted
	}
	k.answeredAt = now
	if d.Allowed {
		paid := min(k.due(now), d.Granted)
		k.owed -= paid
		k.leased, k.grant = min(d.Granted-paid, max(1, k.waiting)+lease-1), d
		k.last, k.expires = now.Add(d.Wait), now.Add(d.Wait+leaseTTL)
		k.step = 0
		if d.Wait > 0 {
			micros := float64(req.Params.Cost) / float64(req.Params.Scale)
			k.step = time.Duration(micros * float64(time.Microsecond))
		}
		// Keep the permits that are good first, and refund those with the longest waits.
		k.last = k.last.Add(-time.Duration(d.Granted-k.leased) * k.step)
		surplus = d.Granted - paid - k.leased
		k.grant.ResetAfter -= k.timeBehind(surplus)
		return surplus
	}
	k.denial, k.deniedWait = d, req.MaxWait
	k.denial.At = now
	pause := max(d.RetryAfter, min(minRetry, sharedPause(req, lease)))
	if d.Never {
		pause = maxDenial
	}
	k.retry, k.until = now.Add(pause), now.Add(min(pause, maxDenial))
	return 0
}

// sharedPause is the time in which permits accumulate for a lease and for all callers that shared a
// request. So one call can admit them all. It is at most the time of half the permits that the
// bucket holds. So the bucket never fills up meanwhile.
func sharedPause(req ratelimit.Request, lease int64) time.Duration {
	if req.Params.Kind != ratelimit.KindBucket || max(req.N, lease) < 2 {
		return 0
	}
	return req.Params.TimeFor(min(max(req.N, lease), req.Params.LargestRequest(req.MaxWait)/2))
}
