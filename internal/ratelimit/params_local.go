package ratelimit

import (
	"time"
	"unique"
)

const (
	maxParts = 1000
	// maxLogged bounds a sliding log's memory.
	maxLogged = 1_000_000
	// MaxSharedLog is the largest limit of a sliding log in Redis, which reads the whole log for
	// each decision.
	MaxSharedLog = 100
)

// localParams compiles logs and the limits that Redis does not support.
func (l Limit) localParams() (Params, error) {
	if l.Algorithm == SmoothWarmingUp {
		return l.perPermit(l.warmupParams)
	}
	limit, interval, err := l.window()
	if err != nil {
		return Params{}, err
	}
	most := maxCount
	if l.Algorithm == SlidingLog {
		most = maxLogged
	}
	if limit < 1 || limit > most {
		return Params{}, BadField("limit", "must be 1 to %d", most)
	}
	us := interval.Microseconds()
	if l.Algorithm == SubWindows && (l.Parts < 1 || l.Parts > maxParts || us%l.Parts != 0) {
		return Params{}, BadField("parts", "must be 1 to %d and divide the interval in µs",
			maxParts)
	}
	t := Params{
		Cost: us, Scale: 1, Free: limit, Cap: limit, MaxPermits: limit, limit: unique.Make(l),
	}
	switch {
	case l.Algorithm == SubWindows:
		t.Scale = l.Parts
	case limit <= MaxSharedLog:
		t.Kind = KindLog
	}
	return t, nil
}

func (l Limit) warmupParams(cost, scale int64) (Params, error) {
	if l.ColdFactor < 1 || l.ColdFactor > 1000 {
		return Params{}, BadField("coldFactor", "must be 1 to 1000")
	}
	warmup, err := seconds("warmupSeconds", l.WarmupSeconds, maxInterval)
	if err != nil {
		return Params{}, err
	}
	most, err := permitsOfAYear(cost, scale)
	if err != nil {
		return Params{}, err
	}
	return Params{
		Cost: cost, Scale: scale, Free: warmup.Microseconds(), MaxPermits: min(maxCount, most),
		limit: unique.Make(l),
	}, l.checkWait()
}

// localWindow is Quota's window for the limits of KindLocal.
func (t Params) localWindow() time.Duration {
	if t.limit.Value().Algorithm == SmoothWarmingUp {
		return time.Second
	}
	return micros(t.Cost)
}
