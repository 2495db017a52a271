package nodes

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// door spreads requests over the nodes that are in it, one after another, and keeps what they answered. It stands where a
// balancer would: whoever is killed stays in it until somebody takes it out.
type door struct {
	through http.RoundTripper

	mu    sync.Mutex
	nodes []string
	next  int
	kept
}

// kept is what went through a door.
type kept struct {
	began   time.Time   // the first request
	paths   []time.Time // when each random path was answered
	asked   int
	reasons map[int]int // answers by status
	broken  int         // no answer: the connection was refused, or broke
	unsaid  int         // 503 without Retry-After
	limited int         // 429 of /randomPath
}

func newDoor(through http.RoundTripper, nodes ...string) *door {
	return &door{through: through, nodes: nodes, kept: kept{reasons: map[int]int{}}}
}

// in lets a node take requests from now on.
func (d *door) in(node string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.nodes = append(d.nodes, node)
}

// out takes a node out.
func (d *door) out(node string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.nodes = slices.DeleteFunc(slices.Clone(d.nodes), func(n string) bool { return n == node })
}

// RoundTrip sends a request to the next node.
func (d *door) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.URL.Host = d.turn()
	resp, err := d.through.RoundTrip(req)
	d.note(req, resp, err)
	return resp, err
}

func (d *door) turn() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.began.IsZero() {
		d.began = time.Now()
	}
	d.next++
	return d.nodes[d.next%len(d.nodes)]
}

func (d *door) note(req *http.Request, resp *http.Response, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asked++
	if err != nil {
		d.broken++
		return
	}
	d.reasons[resp.StatusCode]++
	path := strings.HasPrefix(req.URL.Path, "/randomPath")
	switch {
	case path && resp.StatusCode == http.StatusOK:
		d.paths = append(d.paths, time.Now())
	case path && resp.StatusCode == http.StatusTooManyRequests:
		d.limited++
	case resp.StatusCode == http.StatusServiceUnavailable:
		if seconds, err := strconv.Atoi(resp.Header.Get("Retry-After")); err != nil || seconds < 1 {
			d.unsaid++
		}
	}
}

// seen is what went through so far.
func (d *door) seen() kept {
	d.mu.Lock()
	defer d.mu.Unlock()
	k := d.kept
	k.paths = slices.Clone(d.paths)
	return k
}

// most is by how many permits the paths answered were ever beyond what a rate had earned since the first request. An answer
// comes after its permit is good, never before: so the burst and the leases are an upper bound of it, however slow the machine.
func (k kept) most(rate float64) float64 {
	most := 0.0
	for i, at := range k.paths {
		most = max(most, float64(i+1)-rate*at.Sub(k.began).Seconds())
	}
	return most
}
