package bench

import (
	"bytes"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// counter counts requests by what became of them.
type counter struct {
	next  http.RoundTripper
	began time.Time

	mu   sync.Mutex
	by   map[string]float64
	came []float64 // who asked for a path, in each cameEach
}

// cameEach is fine enough to see that buyers come in bunches where a busy machine lets them.
const cameEach = 20 * time.Millisecond

// average joins two lists of who came; it need not be to scale.
func average(a, b []float64) []float64 {
	if len(a) < len(b) {
		a, b = b, a
	}
	a = slices.Clone(a)
	for i, n := range b {
		a[i] += n
	}
	return a
}

func (c *counter) come() {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := int(time.Since(c.began) / cameEach)
	for len(c.came) <= at {
		c.came = append(c.came, 0)
	}
	c.came[at]++
}

// RoundTrip is a request's.
func (c *counter) RoundTrip(req *http.Request) (*http.Response, error) {
	if strings.HasPrefix(req.URL.Path, "/randomPath") {
		c.come()
	}
	resp, err := c.next.RoundTrip(req)
	if err != nil {
		return resp, err
	}
	kind := kindOf(req.URL.Path, resp.StatusCode)
	soon := kind == looked && isQueued(resp)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.by[kind]++; soon {
		c.by[lookedSoon]++
	}
	return resp, err
}

// isQueued reads an answer, leaves it to be read again, and tells whether it is of an order that is not written yet.
func isQueued(resp *http.Response) bool {
	body, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return err == nil && bytes.Contains(body, []byte(`"queued"`))
}

func kindOf(path string, status int) string {
	switch first, _, _ := strings.Cut(path[1:], "/"); {
	case first == "orders":
		return looked
	case first == "randomPath" && status == http.StatusOK:
		return pathsGiven
	case first == "randomPath":
		return refusals
	case status == http.StatusAccepted:
		return bought
	}
	return lostCalls
}
