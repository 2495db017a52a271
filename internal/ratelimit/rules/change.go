package rules

import (
	"cmp"
	"reflect"

	"flashsale.dev/seckill/internal/ratelimit"
)

// Change is a Limit in which any field may be absent. It is the limit of a rule in the file, or the
// body of an operator's PUT.
type Change struct {
	Algorithm        *ratelimit.Algorithm `json:"algorithm,omitempty" yaml:"algorithm"`
	PermitsPerSecond *float64             `json:"permitsPerSecond,omitempty" yaml:"permitsPerSecond"`
	MaxBurstSeconds  *float64             `json:"maxBurstSeconds,omitempty" yaml:"maxBurstSeconds"`
	MaxWaitMillis    *int64               `json:"maxWaitMillis,omitempty" yaml:"maxWaitMillis"`
	Burst            *int64               `json:"burst,omitempty" yaml:"burst"`
	Delay            *int64               `json:"delay,omitempty" yaml:"delay"`
	NoDelay          *bool                `json:"nodelay,omitempty" yaml:"nodelay"`
	Limit            *int64               `json:"limit,omitempty" yaml:"limit"`
	IntervalSeconds  *float64             `json:"intervalSeconds,omitempty" yaml:"intervalSeconds"`
	Parts            *int64               `json:"parts,omitempty" yaml:"parts"`
	WarmupSeconds    *float64             `json:"warmupSeconds,omitempty" yaml:"warmupSeconds"`
	ColdFactor       *float64             `json:"coldFactor,omitempty" yaml:"coldFactor"`
}

// ruleDefaults complete a rule, so that a rule with only a name and a route is usable. A rule with
// a rate gets reserve with a burst and a wait of 1 s. Any other gets a limit of 100 in 60 s: exact
// by a log while the limit is small, and else an estimate by a sliding window.
func ruleDefaults(c Change) ratelimit.Limit {
	l := ratelimit.Limit{Algorithm: ratelimit.SlidingLog}
	switch {
	case c.PermitsPerSecond != nil:
		l.Algorithm = ratelimit.Reserve
	case c.Limit != nil && *c.Limit > ratelimit.MaxSharedLog:
		l.Algorithm = ratelimit.SlidingWindow
	}
	if c.Algorithm != nil {
		l.Algorithm = *c.Algorithm
	}
	if c.PermitsPerSecond == nil {
		l.Limit, l.IntervalSeconds = 100, 60
	}
	switch l.Algorithm {
	case ratelimit.Reserve, ratelimit.SmoothBursty:
		l.MaxBurstSeconds, l.MaxWaitMillis = 1, 1000
	case ratelimit.TokenBucket:
		l.MaxBurstSeconds = 1
	case ratelimit.SubWindows:
		l.Parts = 10
	case ratelimit.SmoothWarmingUp:
		l.WarmupSeconds, l.ColdFactor, l.MaxWaitMillis = 10, 3, 1000
	}
	return l
}

// check returns a *ratelimit.FieldError for a change with both forms of a rate. Zeros are no form,
// because a limiter is shown with all fields.
func (c Change) check() error {
	l := c.over(ratelimit.Limit{})
	if l.PermitsPerSecond != 0 && (l.Limit != 0 || l.IntervalSeconds != 0) {
		return ratelimit.BadField("permitsPerSecond",
			"is a rate, as limit and intervalSeconds are: set one of both")
	}
	return nil
}

// WithDefaults completes the change with the defaults of its algorithm.
func (c Change) WithDefaults() ratelimit.Limit { return c.over(ruleDefaults(c)) }

// Apply applies the change to a limit. Another algorithm starts from its own defaults and the old
// rate, because burst and wait differ in meaning between algorithms.
func (c Change) Apply(l ratelimit.Limit) ratelimit.Limit {
	if c.Algorithm != nil && *c.Algorithm != l.Algorithm {
		switch {
		case c.PermitsPerSecond != nil:
		case l.PermitsPerSecond == 0:
			c.Limit = cmp.Or(c.Limit, &l.Limit)
			c.IntervalSeconds = cmp.Or(c.IntervalSeconds, &l.IntervalSeconds)
		case c.Limit == nil && c.IntervalSeconds == nil:
			c.PermitsPerSecond = &l.PermitsPerSecond
		}
		return c.WithDefaults()
	}
	switch { // a rate has one of two forms: the new one replaces the other
	case c.PermitsPerSecond != nil:
		l.Limit, l.IntervalSeconds = 0, 0
	case c.Limit != nil || c.IntervalSeconds != nil:
		l.PermitsPerSecond = 0
	}
	switch l.Algorithm { // so has the burst of these
	case ratelimit.TokenBucket, ratelimit.Reserve:
		if c.MaxBurstSeconds != nil {
			l.Burst = 0
		}
	}
	return c.over(l)
}

// over replaces the fields that the change has. A Change has the fields of a Limit, by the same
// names; a test checks that.
func (c Change) over(l ratelimit.Limit) ratelimit.Limit {
	from, to := reflect.ValueOf(c), reflect.ValueOf(&l).Elem()
	for i := range from.NumField() {
		if field := from.Field(i); !field.IsNil() {
			to.FieldByName(from.Type().Field(i).Name).Set(field.Elem())
		}
	}
	return l
}
