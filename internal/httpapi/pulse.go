package httpapi

import (
	"math/bits"
	"sync"
	"time"
)

// pulse is how long this node's purchases have taken of late: a histogram for each of the last seconds.
type pulse struct {
	mu      sync.Mutex
	seconds [pulseSpan]beat
}

// pulseSpan is how many seconds are looked at together.
const pulseSpan = 10

// beat is one second: how many purchases took up to 2^i quarters of a step beyond the step before, in microseconds.
type beat struct {
	second int64 // Unix
	counts [4 * 32]int64
}

// observe counts one purchase.
func (p *pulse) observe(now time.Time, took time.Duration) {
	second := now.Unix()
	p.mu.Lock()
	defer p.mu.Unlock()
	b := &p.seconds[second%pulseSpan]
	if b.second != second {
		*b = beat{second: second}
	}
	b.counts[bucketOf(took.Microseconds())]++
}

// bucketOf is four buckets to each doubling: none is wider than a quarter of what is in it.
func bucketOf(micros int64) int {
	if micros < 4 {
		return max(0, int(micros))
	}
	n := bits.Len64(uint64(micros)) - 1 // 2^n ≤ micros
	return min(4*32-1, 4*(n-1)+int(micros>>(n-2)&3))
}

// upTo is the largest number of microseconds in a bucket.
func upTo(bucket int) int64 {
	if bucket < 4 {
		return int64(bucket)
	}
	n := bucket/4 + 1
	return int64(4+bucket%4+1)<<(n-2) - 1
}

// p99 is what 99 of 100 purchases of the last seconds took at most; 0 where there were none.
func (p *pulse) p99(now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	var counts [4 * 32]int64
	var all int64
	for i := range p.seconds {
		if now.Unix()-p.seconds[i].second >= pulseSpan {
			continue
		}
		for j, n := range p.seconds[i].counts {
			counts[j] += n
			all += n
		}
	}
	left := (all*99 + 99) / 100
	for j, n := range counts {
		if left -= n; left <= 0 && n > 0 {
			return time.Duration(upTo(j)) * time.Microsecond
		}
	}
	return 0
}
