package ratelimit

// These engines hold in memory the state that Redis holds under a key. The arithmetic is
// that of Params, so that both decide alike.

type bucketEngine struct {
	params Params
	state  *bucketState
}

func (e *bucketEngine) set(t Params, _ int64) { e.params = t }

func (e *bucketEngine) decide(now int64, a request) Decision {
	e.state = e.params.reanchor(e.state, now)
	at, d := e.params.decideBucket(e.params.level(e.state, now), a)
	if d.Allowed {
		e.state = e.params.newBucketState(at, now)
	}
	return d
}

func (e *bucketEngine) refund(now, _, n int64) {
	e.state = e.params.reanchor(e.state, now)
	if e.state != nil && n > 0 {
		at := e.params.refundBucket(e.params.level(e.state, now), n)
		e.state = e.params.newBucketState(at, now)
		if at == (level{}) && e.params.Kind == KindBucket {
			e.state = nil // full: equals no state, and Redis stores none
		}
	}
}

func (e *bucketEngine) status(now int64) Decision {
	e.state = e.params.reanchor(e.state, now)
	return e.params.bucketStatus(e.params.level(e.state, now))
}

func (e *bucketEngine) clone() engine { c := *e; return &c }

type fixedEngine struct {
	params Params
	state  *fixedState
}

func (e *fixedEngine) set(t Params, _ int64) { e.params = t }

func (e *fixedEngine) decide(now int64, a request) Decision {
	e.state = e.params.reanchorFixed(e.state, now)
	at, d := e.params.decideFixed(e.params.fixedAt(e.state, now), now, a)
	if d.Allowed {
		e.state = &at
	}
	return d
}

func (e *fixedEngine) refund(now, booked, n int64) {
	e.state = e.params.reanchorFixed(e.state, now)
	if e.state != nil && n > 0 {
		at := e.params.refundFixed(e.params.fixedAt(e.state, now), booked, n)
		e.state = &at
		if at.count == 0 {
			e.state = nil
		}
	}
}

func (e *fixedEngine) status(now int64) Decision {
	e.state = e.params.reanchorFixed(e.state, now)
	return e.params.fixedStatus(e.params.fixedAt(e.state, now), now)
}

func (e *fixedEngine) clone() engine { c := *e; return &c }

type slidingEngine struct {
	params Params
	state  *slidingState
}

func (e *slidingEngine) set(t Params, _ int64) { e.params = t }

func (e *slidingEngine) decide(now int64, a request) Decision {
	e.state = e.params.reanchorSliding(e.state, now/1000)
	at, d := e.params.decideSliding(e.params.slidingAt(e.state, now/1000), now, a)
	if d.Allowed {
		e.state = &at
	}
	return d
}

func (e *slidingEngine) refund(now, booked, n int64) {
	e.state = e.params.reanchorSliding(e.state, now/1000)
	if e.state != nil && n > 0 {
		at := e.params.refundSliding(e.params.slidingAt(e.state, now/1000), booked/1000, n)
		e.state = &at
		if at.count == 0 && at.last == 0 {
			e.state = nil
		}
	}
}

func (e *slidingEngine) status(now int64) Decision {
	e.state = e.params.reanchorSliding(e.state, now/1000)
	return e.params.slidingStatus(e.params.slidingAt(e.state, now/1000), now)
}

func (e *slidingEngine) clone() engine { c := *e; return &c }
