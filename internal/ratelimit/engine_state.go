package ratelimit

// The engines that keep in memory what Redis keeps under a key.

type bucketEngine struct {
	terms Params
	state *bucketState
}

func (e *bucketEngine) set(t Params, _ int64) { e.terms = t }

func (e *bucketEngine) decide(now int64, a request) Decision {
	e.state = e.terms.reanchor(e.state, now)
	at, d := e.terms.decideBucket(e.terms.level(e.state, now), a)
	if d.Allowed {
		e.state = e.terms.newBucketState(at, now)
	}
	return d
}

func (e *bucketEngine) refund(now, _, n int64) {
	e.state = e.terms.reanchor(e.state, now)
	if e.state != nil && n > 0 {
		at := e.terms.refundBucket(e.terms.level(e.state, now), n)
		e.state = e.terms.newBucketState(at, now)
		if at == (level{}) && e.terms.Kind == KindBucket {
			e.state = nil // full: the same as none, and Redis keeps none
		}
	}
}

func (e *bucketEngine) status(now int64) Decision {
	e.state = e.terms.reanchor(e.state, now)
	return e.terms.bucketStatus(e.terms.level(e.state, now))
}

func (e *bucketEngine) clone() engine { c := *e; return &c }

type fixedEngine struct {
	terms Params
	state *fixedState
}

func (e *fixedEngine) set(t Params, _ int64) { e.terms = t }

func (e *fixedEngine) decide(now int64, a request) Decision {
	e.state = e.terms.reanchorFixed(e.state, now)
	at, d := e.terms.decideFixed(e.terms.fixedAt(e.state, now), now, a)
	if d.Allowed {
		e.state = &at
	}
	return d
}

func (e *fixedEngine) refund(now, booked, n int64) {
	e.state = e.terms.reanchorFixed(e.state, now)
	if e.state != nil && n > 0 {
		at := e.terms.refundFixed(e.terms.fixedAt(e.state, now), booked, n)
		e.state = &at
		if at.count == 0 {
			e.state = nil
		}
	}
}

func (e *fixedEngine) status(now int64) Decision {
	e.state = e.terms.reanchorFixed(e.state, now)
	return e.terms.fixedStatus(e.terms.fixedAt(e.state, now), now)
}

func (e *fixedEngine) clone() engine { c := *e; return &c }

type slidingEngine struct {
	terms Params
	state *slidingState
}

func (e *slidingEngine) set(t Params, _ int64) { e.terms = t }

func (e *slidingEngine) decide(now int64, a request) Decision {
	e.state = e.terms.reanchorSliding(e.state, now/1000)
	at, d := e.terms.decideSliding(e.terms.slidingAt(e.state, now/1000), now, a)
	if d.Allowed {
		e.state = &at
	}
	return d
}

func (e *slidingEngine) refund(now, booked, n int64) {
	e.state = e.terms.reanchorSliding(e.state, now/1000)
	if e.state != nil && n > 0 {
		at := e.terms.refundSliding(e.terms.slidingAt(e.state, now/1000), booked/1000, n)
		e.state = &at
		if at.count == 0 && at.last == 0 {
			e.state = nil
		}
	}
}

func (e *slidingEngine) status(now int64) Decision {
	e.state = e.terms.reanchorSliding(e.state, now/1000)
	return e.terms.slidingStatus(e.terms.slidingAt(e.state, now/1000), now)
}

func (e *slidingEngine) clone() engine { c := *e; return &c }
