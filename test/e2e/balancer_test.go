package e2e

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// balancer spreads requests over its nodes in turn and records the answers. A killed node stays in
// the balancer until the test removes it, because there are no health checks.
type balancer struct {
	through http.RoundTripper

	mu    sync.Mutex
	nodes []string
	next  int
	traffic
}

// traffic counts the requests to a balancer and their answers.
type traffic struct {
	began        time.Time   // the first request
	paths        []time.Time // when each random path was answered
	requests     int
	statuses     map[int]int // answers by status
	broken       int         // no answer: the connection was refused, or broke
	noRetryAfter int         // 503 without Retry-After
	limited      int         // 429 of /randomPath
}

func newBalancer(through http.RoundTripper, nodes ...string) *balancer {
	return &balancer{through: through, nodes: nodes, traffic: traffic{statuses: map[int]int{}}}
}

// add lets a node take requests from now on.
func (b *balancer) add(node string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.nodes = append(b.nodes, node)
}

// remove stops sending requests to a node.
func (b *balancer) remove(node string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.nodes = slices.DeleteFunc(slices.Clone(b.nodes), func(n string) bool { return n == node })
}

// RoundTrip sends a request to the next node.
func (b *balancer) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.URL.Host = b.nextNode()
	resp, err := b.through.RoundTrip(req)
	b.note(req, resp, err)
	return resp, err
}

// nextNode returns the address of the node whose turn it is.
func (b *balancer) nextNode() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.began.IsZero() {
		b.began = time.Now()
	}
	b.next++
	return b.nodes[b.next%len(b.nodes)]
}

func (b *balancer) note(req *http.Request, resp *http.Response, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.requests++
	if err != nil {
		b.broken++
		return
	}
	b.statuses[resp.StatusCode]++
	path := strings.HasPrefix(req.URL.Path, "/randomPath")
	switch {
	case path && resp.StatusCode == http.StatusOK:
		b.paths = append(b.paths, time.Now())
	case path && resp.StatusCode == http.StatusTooManyRequests:
		b.limited++
	case resp.StatusCode == http.StatusServiceUnavailable:
		if seconds, err := strconv.Atoi(resp.Header.Get("Retry-After")); err != nil || seconds < 1 {
			b.noRetryAfter++
		}
	}
}

// seen returns the counts so far.
func (b *balancer) seen() traffic {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.traffic
	now.paths = slices.Clone(b.paths)
	return now
}

// beyondRate returns the largest excess of answered paths over rate × time, since the first
// request. A path's answer comes after its permit. The burst and the leases are therefore an upper
// bound, however slow the machine is.
func (k traffic) beyondRate(rate float64) float64 {
	excess := 0.0
	for i, at := range k.paths {
		excess = max(excess, float64(i+1)-rate*at.Sub(k.began).Seconds())
	}
	return excess
}
