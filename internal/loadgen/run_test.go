package loadgen

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"flashsale.dev/seckill/internal/loadgen/apiclient"
	"flashsale.dev/seckill/internal/loadgen/buyer"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake is an API inside a testing/synctest bubble, where times are exact. Each call takes 1 ms or
// lasts until the end of a stall.
type fake struct {
	mu     sync.Mutex
	stalls func() (until time.Time)
	most   int // most concurrent calls
	now    int
	paths  []time.Time // times of the requests for a path
	fail   error
}

func (f *fake) RoundTrip(r *http.Request) (*http.Response, error) {
	f.enter(r)
	defer f.leave()
	time.Sleep(time.Millisecond)
	if f.stalls != nil {
		time.Sleep(time.Until(f.stalls()))
	}
	if f.fail != nil {
		return nil, f.fail
	}
	status, data := http.StatusOK, `{"randomPath": "`+strings.Repeat("a",
		32)+`", "status": "created"}`
	if strings.HasSuffix(r.URL.Path, "/decrStock") {
		status, data = http.StatusAccepted, fmt.Sprintf(`{"orderSn": "sn-of-%s"}`,
			r.Header.Get("Authorization")[len("Bearer "):])
	}
	body := fmt.Sprintf(`{"code": %d, "reason": "OK", "data": %s}`, status, data)
	return &http.Response{
		StatusCode: status, Header: http.Header{},
		Body: io.NopCloser(strings.NewReader(body)), Request: r,
	}, nil
}

func (f *fake) enter(r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now++
	f.most = max(f.most, f.now)
	if r.URL.Path == "/randomPath" {
		f.paths = append(f.paths, time.Now())
	}
}

func (f *fake) leave() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now--
}

func (f *fake) plan() Plan {
	return Plan{
		Bases: []string{"http://fake"}, GoodsID: "1", HTTP: &http.Client{Transport: f},
		Buyers: 1000, FirstID: 1,
		Token: func(id int64) (string, error) { return fmt.Sprint(id), nil },
	}
}

// simulate runs a test of a plan against an API in a bubble.
func simulate(t *testing.T, f *fake, test func(t *testing.T, f *fake, p Plan)) {
	synctest.Test(t, func(t *testing.T) { test(t, f, f.plan()) })
}

func of(t *testing.T, r Result, s buyer.Step) Step {
	t.Helper()
	step := r.Of(s)
	require.Positive(t, step.Count, "no %s in %+v", s, r.Steps)
	return step
}

// TestRun_OpenLoopChargesStallToAllDueBuyers stalls the server for two of ten seconds. A fifth of
// the buyers is due in that time, and each of them waits. Therefore p90 is one second and p99 is
// nearly two. A closed-loop generator would send only one buyer into the stall and show it only in
// the maximum.
func TestRun_OpenLoopChargesStallToAllDueBuyers(t *testing.T) {
	simulate(t, &fake{}, func(t *testing.T, f *fake, p Plan) {
		began := time.Now()
		f.stalls = func() time.Time {
			if at := time.Since(began); at > 4*time.Second && at < 6*time.Second {
				return began.Add(6 * time.Second)
			}
			return time.Time{}
		}
		p.Rate = 100
		r := Run(t.Context(), p)
		path := of(t, r, buyer.StepPath)
		require.EqualValues(t, 1000, path.Count)
		require.InDelta(t, 1, path.P50, .1)
		require.InDelta(t, 1000, path.P90, 30)
		require.InDelta(t, 1900, path.P99, 30)
		require.InDelta(t, 2000, path.Max, 30)
		require.Zero(t, of(t, r, SpanLag).Max, "the generator itself must have no lag")
		require.InDelta(t, 10, r.Took.Seconds(), .1)

		waited := 0.0
		for _, point := range r.Points {
			waited = max(waited, point.Steps[buyer.StepPath].P99)
		}
		require.InDelta(t, 2000, waited, 60, "the series must show the stall")
	})
}

// TestRun_InFlightLimitCountsAsLag checks that a buyer's wait for the in-flight limit counts in its
// latency and as lag.
func TestRun_InFlightLimitCountsAsLag(t *testing.T) {
	simulate(t, &fake{}, func(t *testing.T, f *fake, p Plan) {
		p.Rate, p.Buyers, p.InFlight = 1000, 300, 1 // each takes 3 ms: three times too slow
		r := Run(t.Context(), p)
		require.InDelta(t, 600, of(t, r, SpanLag).Max, 10)
		require.InDelta(t, 600, of(t, r, buyer.StepPath).Max, 10)
		require.Equal(t, 1, f.most)
	})
}

func TestRun_ClosedLoopKeepsUsersActive(t *testing.T) {
	simulate(t, &fake{}, func(t *testing.T, f *fake, p Plan) {
		p.Users = 10
		r := Run(t.Context(), p)
		require.Equal(t, 10, f.most)
		require.InDelta(t, .3, r.Took.Seconds(), .01) // three calls of 1 ms in each of 100 rounds
		require.Equal(t, 1000, r.Count(buyer.Won))
		require.Len(t, r.Holders, 1000)
	})
}

func TestRun_SpikeStartsTogetherBesideUsers(t *testing.T) {
	simulate(t, &fake{}, func(t *testing.T, f *fake, p Plan) {
		p.Users, p.Spike, p.StartAt = 1, 500, time.Now().Add(time.Minute-time.Millisecond)
		r := Run(t.Context(), p)
		require.Equal(t, 501, f.most)
		for _, at := range f.paths[:501] {
			require.Equal(t, p.StartAt, at)
		}
		require.Equal(t, 1000, r.Arrived)
		require.Equal(t, p.StartAt, r.Started)
		for _, point := range r.Points {
			require.Less(t, float64(point.Arrived)/point.Span, 10_000.0,
				"the interval is too short for a rate")
		}
	})
}

func TestRun_CancelledContextKeepsRecordedResults(t *testing.T) {
	simulate(t, &fake{}, func(t *testing.T, f *fake, p Plan) {
		p.Rate = 100
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second+time.Millisecond/2)
		defer cancel()
		r := Run(ctx, p)
		require.Equal(t, 301, r.Arrived)
		require.Equal(t, 1000, r.Planned)
		require.GreaterOrEqual(t, len(r.Holders), 300, "only in-flight buyers may be absent")
	})
}

func TestPlanKind_FollowsSharesAndSeed(t *testing.T) {
	p := Plan{Impatient: .3, Hostile: .1, Seed: 5}
	n := map[Kind]int{}
	for i := range 10_000 {
		n[p.kind(i)]++
		require.Equal(t, p.kind(i), p.kind(i))
	}
	require.InDelta(t, 1000, n[Hostile], 150)
	require.InDelta(t, 3000, n[Impatient], 250)
	require.InDelta(t, 6000, n[Polite], 300)
}

func TestErrorClass_NamesMissingAnswers(t *testing.T) {
	for said, err := range map[string]error{
		"timeout": os.ErrDeadlineExceeded, "connection refused": syscall.ECONNREFUSED,
		"the address is not a loopback one": apiclient.ErrRemote,
	} {
		require.Equal(t, said, errorClass(apiclient.Answer{},
			&url.Error{Op: "Post", Err: &net.OpError{Op: "dial", Err: err}}))
	}
	require.Equal(t, "status 502 with an unknown body",
		errorClass(apiclient.Answer{Status: 502}, errors.New("html")))

	simulate(t, &fake{fail: syscall.ECONNREFUSED}, func(t *testing.T, _ *fake, p Plan) {
		p.Users, p.Buyers, p.Patience = 5, 10, time.Second
		r := Run(t.Context(), p)
		path := of(t, r, buyer.StepPath)
		require.Equal(t, path.Count, path.Errors)
		require.Equal(t, map[string]int64{"error: connection refused": path.Count}, path.Answers)
		require.Equal(t, 10, r.Count(buyer.GaveUp))
		require.Empty(t, r.Holders, "a buyer without a purchase request cannot hold an order")
	})
}

// TestRun_HostileCallThatSucceedsIsNotRefused attacks an API that accepts every call.
func TestRun_HostileCallThatSucceedsIsNotRefused(t *testing.T) {
	simulate(t, &fake{}, func(t *testing.T, _ *fake, p Plan) {
		p.Users, p.Buyers, p.Hostile = 1, 10, 1
		r := Run(t.Context(), p)
		require.Equal(t, map[buyer.Outcome]int{notRefused: 10}, r.Outcomes[Hostile])
		require.NotEmpty(t, r.Breaches)
	})
}

// TestRun_LongSeriesHasFewerPointsWithoutLoss checks that a long run has about 600 points. Their
// sums still count every buyer.
func TestRun_LongSeriesHasFewerPointsWithoutLoss(t *testing.T) {
	simulate(t, &fake{}, func(t *testing.T, f *fake, p Plan) {
		p.Rate = 1
		r := Run(t.Context(), p)
		require.InDelta(t, 600, len(r.Points), 1)
		sum, won, done, at := 0, 0, 0, 0.0
		for _, point := range r.Points {
			sum, won, done = sum+point.Arrived, won+point.Won, done+point.Done
			require.InDelta(t, at, point.At-point.Span, 1e-6)
			at = point.At
		}
		require.Equal(t, []int{1000, 1000, 1000}, []int{sum, won, done})
	})
}

// TestNewHolder_KeepsOrderNumbersOnce checks that a holder has each order number one time. Two
// numbers for one path mark it as doubled.
func TestNewHolder_KeepsOrderNumbersOnce(t *testing.T) {
	result := buyer.Result{BuyerID: 7, Accepted: []buyer.Accepted{
		{Path: "a", OrderSn: "1"}, {Path: "a", OrderSn: "1"}, {Path: "b", OrderSn: "2"},
	}}
	require.Equal(t, []string{"1", "2"}, newHolder(result).OrderSns)
	require.False(t, newHolder(result).Doubled)
	result.Accepted = append(result.Accepted, buyer.Accepted{Path: "a", OrderSn: "3"})
	require.True(t, newHolder(result).Doubled)
}
