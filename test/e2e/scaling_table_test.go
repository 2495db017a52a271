//go:build measure

package e2e

import (
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"flashsale.dev/seckill/internal/loadgen/apiclient"
	"flashsale.dev/seckill/internal/testing/buyers"
	"flashsale.dev/seckill/internal/testing/installation"
	"flashsale.dev/seckill/internal/testing/must"
)

// row has the measurements for one number of nodes.
type row struct {
	apis, consumers                    int
	requests, redisCalls, askedRedis   float64
	beyond, allowed, undecided, mostMB float64
	cpu                                float64 // µs of all APIs for each request
	stale                              time.Duration
	took                               time.Duration
}

// TestScaling_Table runs the same rush over 1, 2, 4 and 8 APIs with 1 to 4 consumers and prints a
// table. It takes a minute and a half: go test -tags measure ./test/e2e -run Scaling_Table.
func TestScaling_Table(t *testing.T) {
	fmt.Fprintln(os.Stdout,
		"| APIs | consumers | requests | Redis calls each | limiter asked, per node and s | beyond rate × T | allowed | undecided | "+
			"API memory, most | API CPU each | older state answered for |\n| --: | --: | --: | --: | --: | --: | --: | --: | --: | --: | --: |")
	for _, n := range [][2]int{{1, 1}, {2, 2}, {4, 3}, {8, 4}} {
		t.Run(fmt.Sprintf("%d APIs", n[0]), func(t *testing.T) {
			r := rushOver(t, n[0], n[1])
			fmt.Fprintf(os.Stdout,
				"| %d | %d | %.0f | %.3f | %.0f | %.0f | %.0f | %.0f | %.0f MB | %.0f µs | %d ms |\n", r.apis, r.consumers, r.requests,
				r.redisCalls/r.requests, r.askedRedis, r.beyond, r.allowed, r.undecided, r.mostMB,
				r.cpu, r.stale.Milliseconds())
		})
	}
}

func rushOver(t *testing.T, apis, consumers int) row {
	const units = 2400
	r := installation.Start(t, suite,
		installation.Options{APIs: apis, Consumers: consumers, Hosts: true})
	before := spentBy(t, r)
	c := begin(t, r, units, mostRate,
		buyers.Plan{Buyers: 16_000, Concurrency: 3000, Spread: 6 * time.Second})
	c.exact(t, units)
	c.polite(t)
	got := row{apis: apis, consumers: consumers, took: c.report.Took}
	seen := c.balancer.seen()
	got.requests, got.redisCalls = float64(seen.asked),
		float64(installation.RedisCalls(t, r.RedisClient(t))-c.asked)
	got.cpu = float64((spentBy(t, r) - before).Microseconds()) / got.requests
	for _, p := range r.APIs {
		got.undecided += event(t, p, "error")
		got.askedRedis += event(t, p, "redis_call") / got.took.Seconds() / float64(apis)
		got.mostMB = max(got.mostMB, peakMB(t, p))
	}
	got.beyond, got.allowed = seen.most(c.rate), c.rate+float64(apis*leases)
	c.bounded(t, got.undecided)
	got.stale = c.older(t)
	return got
}

func spentBy(t *testing.T, r *installation.Installation) (sum time.Duration) {
	for _, p := range r.APIs {
		sum += used(t, p)
	}
	return sum
}

// older closes the sale while many clients read it on every node. It returns how long after the
// close a new read still got the previous state.
func (c *crowd) older(t *testing.T) time.Duration {
	var mu sync.Mutex
	var closed, latest time.Time
	stop := make(chan struct{})
	var all errgroup.Group
	for i := range c.APIs {
		looker := apiclient.Client{Base: c.Base(i), HTTP: apiclient.NewHTTP(8)}
		for range 8 {
			all.Go(func() error {
				for {
					select {
					case <-stop:
						return nil
					default:
					}
					began := time.Now()
					var sale struct{ Phase string }
					if err := looker.Do(t.Context(), http.MethodGet, "/sales/"+c.goods, nil,
						&sale); err != nil {
						return err
					}
					mu.Lock()
					if sale.Phase != "ended" && began.After(latest) {
						latest = began
					}
					mu.Unlock()
				}
			})
		}
	}
	time.Sleep(300 * time.Millisecond) // by now the nodes cache the sale
	require.NoError(t, c.Merchant(t).Do(t.Context(), http.MethodPost,
		"/admin/sales/"+c.goods+"/close", nil, &struct{}{}))
	closed = time.Now()
	time.Sleep(500 * time.Millisecond)
	close(stop)
	require.NoError(t, all.Wait())
	return slices.MaxFunc([]time.Duration{0, latest.Sub(closed)}, func(a, b time.Duration) int {
		return int(a - b)
	})
}

// used returns the processor time of a process so far.
func used(t *testing.T, p *installation.Program) time.Duration {
	text := must.Get(os.ReadFile("/proc/" + strconv.Itoa(p.Pid()) + "/stat"))(t)
	_, after, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(after)
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * (time.Second / 100) // USER_HZ
}
