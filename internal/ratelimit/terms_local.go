package ratelimit

import "time"

const (
	maxParts = 1000
	// maxLogged bounds a sliding log's memory: eight bytes an admission.
	maxLogged = 1_000_000
)

// localTerms checks the limits that have no twin in Redis.
func (l Limit) localTerms() (Terms, error) {
	if l.Algorithm == SmoothWarmingUp {
		return l.warmingTerms()
	}
	limit, interval, err := l.window()
	if err != nil {
		return Terms{}, err
	}
	most := maxCount
	if l.Algorithm == SlidingLog {
		most = maxLogged
	}
	if limit < 1 || limit > most {
		return Terms{}, BadField("limit", "must be 1 to %d", most)
	}
	if l.Algorithm == SubWindows && (l.Parts < 1 || l.Parts > maxParts || interval.Microseconds()%l.Parts != 0) {
		return Terms{}, BadField("parts", "must be 1 to %d and divide the interval's microseconds", maxParts)
	}
	return Terms{Cost: interval.Microseconds(), Scale: max(1, l.Parts), Free: limit, Most: limit, limit: l}, nil
}

func (l Limit) warmingTerms() (Terms, error) {
	cost, scale, err := l.perPermit()
	if err != nil {
		return Terms{}, err
	}
	if l.ColdFactor < 1 || l.ColdFactor > 1000 {
		return Terms{}, BadField("coldFactor", "must be 1 to 1000")
	}
	warmup, err := seconds("warmupSeconds", l.WarmupSeconds, maxInterval)
	if err != nil {
		return Terms{}, err
	}
	if l.MaxWaitMillis < 0 || l.MaxWaitMillis > maxInterval.Milliseconds() {
		return Terms{}, BadField("maxWaitMillis", "must be 0 to %d", maxInterval.Milliseconds())
	}
	return Terms{Cost: cost, Scale: scale, Free: warmup.Microseconds(), Most: maxCount, limit: l}, nil
}

// localWindow is Quota's window for the limits that live in process only.
func (t Terms) localWindow() time.Duration {
	if t.limit.Algorithm == SmoothWarmingUp {
		return time.Second
	}
	return micros(t.Cost)
}
