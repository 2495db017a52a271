package ratelimit

// The engines that keep in memory what Redis keeps under a key.

type bucketEngine struct {
	terms Terms
	state *moment
}

func (e *bucketEngine) set(t Terms, _ int64) { e.terms = t }

func (e *bucketEngine) decide(now int64, a ask) Decision {
	e.state = e.terms.reanchor(e.state, now)
	at, d := e.terms.askBucket(e.terms.level(e.state, now), a)
	if d.Allowed {
		e.state = e.terms.moment(at, now)
	}
	return d
}

func (e *bucketEngine) refund(now, _, n int64) {
	e.state = e.terms.reanchor(e.state, now)
	if e.state != nil && n > 0 {
		at := e.terms.giveBack(e.terms.level(e.state, now), n)
		e.state = e.terms.moment(at, now)
		if at == (level{}) && e.terms.Kind == KindBucket {
			e.state = nil // full: the same as none, and Redis keeps none
		}
	}
}

func (e *bucketEngine) described(now int64) Decision {
	e.state = e.terms.reanchor(e.state, now)
	return e.terms.described(e.terms.level(e.state, now))
}

func (e *bucketEngine) clone() engine { c := *e; return &c }

type fixedEngine struct {
	terms Terms
	state *fixedState
}

func (e *fixedEngine) set(t Terms, _ int64) { e.terms = t }

func (e *fixedEngine) decide(now int64, a ask) Decision {
	e.state = e.terms.reanchorFixed(e.state, now)
	at, d := e.terms.askFixed(e.terms.fixedAt(e.state, now), now, a)
	if d.Allowed {
		e.state = &at
	}
	return d
}

func (e *fixedEngine) refund(now, booked, n int64) {
	e.state = e.terms.reanchorFixed(e.state, now)
	if e.state != nil && n > 0 {
		at := e.terms.giveBackFixed(e.terms.fixedAt(e.state, now), booked, n)
		e.state = &at
		if at.count == 0 {
			e.state = nil
		}
	}
}

func (e *fixedEngine) described(now int64) Decision {
	e.state = e.terms.reanchorFixed(e.state, now)
	return e.terms.fixedDescribed(e.terms.fixedAt(e.state, now), now)
}

func (e *fixedEngine) clone() engine { c := *e; return &c }

type slidingEngine struct {
	terms Terms
	state *slidingState
}

func (e *slidingEngine) set(t Terms, _ int64) { e.terms = t }

func (e *slidingEngine) decide(now int64, a ask) Decision {
	e.state = e.terms.reanchorSliding(e.state, now/1000)
	at, d := e.terms.askSliding(e.terms.slidingAt(e.state, now/1000), now, a)
	if d.Allowed {
		e.state = &at
	}
	return d
}

func (e *slidingEngine) refund(now, booked, n int64) {
	e.state = e.terms.reanchorSliding(e.state, now/1000)
	if e.state != nil && n > 0 {
		at := e.terms.giveBackSliding(e.terms.slidingAt(e.state, now/1000), booked/1000, n)
		e.state = &at
		if at.count == 0 && at.last == 0 {
			e.state = nil
		}
	}
}

func (e *slidingEngine) described(now int64) Decision {
	e.state = e.terms.reanchorSliding(e.state, now/1000)
	return e.terms.slidingDescribed(e.terms.slidingAt(e.state, now/1000), now)
}

func (e *slidingEngine) clone() engine { c := *e; return &c }
