package buyer

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"flashsale.dev/seckill/internal/loadgen/apiclient"
	"flashsale.dev/seckill/internal/testing/must"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeAPI answers as the test defines. It counts the calls by kind.
type fakeAPI struct {
	mu    sync.Mutex
	asked map[string]int
	// retryAfter is the header, in seconds.
	retryAfter string
	// answer gets the kind of the call and the number of earlier calls of that kind. Status 0
	// stands for the default response.
	answer func(kind string, before int) (status int, reason string)
}

func (s *fakeAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	kind := "order"
	switch {
	case r.URL.Path == "/randomPath":
		kind = "path"
	case strings.HasSuffix(r.URL.Path, "/decrStock"):
		kind = "buy"
	case r.Method == http.MethodPost:
		kind = "cancel"
	}
	s.mu.Lock()
	before := s.asked[kind]
	s.asked[kind]++
	s.mu.Unlock()
	status, reason := 0, ""
	if s.answer != nil {
		status, reason = s.answer(kind, before)
	}
	if status == 0 {
		status, reason = map[string]int{"path": 200, "buy": 202, "order": 200, "cancel": 200}[kind], "OK"
	}
	w.Header().Set("Retry-After", s.retryAfter)
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"code": %d, "reason": %q, "data":
		{"randomPath": "%032d", "orderSn": "sn-1", "status": "created"}}`, status, reason, 1)
}

func startFakeAPI(
	t *testing.T, answer func(kind string, before int) (int, string),
) (*fakeAPI, Buyer) {
	t.Helper()
	s := &fakeAPI{asked: map[string]int{}, retryAfter: "1", answer: answer}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	httpClient := apiclient.NewHTTP(8)
	t.Cleanup(httpClient.CloseIdleConnections)
	return s, Buyer{
		Client: apiclient.Client{Base: server.URL, HTTP: httpClient}, ID: 7, GoodsID: "1",
		Quantity: 1, Patience: 10 * time.Second, RetryErrors: true,
	}
}

func TestBuy_ImpatientBuyerSendsParallelRequestsAndBoundsWaits(t *testing.T) {
	s, b := startFakeAPI(t, func(kind string, before int) (int, string) {
		if kind == "path" && before == 0 {
			return http.StatusTooManyRequests, "RATE_LIMITED"
		}
		return 0, ""
	})
	b.ParallelRequests, b.MaxRetryWait = 3, time.Millisecond
	result := must.Get(b.Buy(t.Context()))(t)
	require.Equal(t, Won, result.Outcome)
	require.Len(t, result.Accepted, 3)
	require.Equal(t, 2, s.asked["path"], "the 429 was retried")
	require.Less(t, result.DecisionTime, time.Second, "the buyer must cap the wait at MaxRetryWait")
	require.Equal(t, 3, s.asked["buy"])
}

// TestBuy_PatienceEndsALongerRetryAfter has an API that is limited for longer than the buyer tries.
func TestBuy_PatienceEndsALongerRetryAfter(t *testing.T) {
	s, b := startFakeAPI(t, func(string, int) (int, string) {
		return http.StatusTooManyRequests, "RATE_LIMITED"
	})
	s.retryAfter, b.Patience = "3600", 10*time.Millisecond
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	result := must.Get(b.Buy(ctx))(t)
	require.Equal(t, GaveUp, result.Outcome)
	require.LessOrEqual(t, s.asked["path"], 2)
}

// TestBuy_OneAcceptedParallelRequestWins checks that a single 202 among three parallel requests
// makes a purchase.
func TestBuy_OneAcceptedParallelRequestWins(t *testing.T) {
	_, b := startFakeAPI(t, func(kind string, before int) (int, string) {
		if kind == "buy" && before != 1 {
			return http.StatusConflict, "SOLD_OUT"
		}
		return 0, ""
	})
	b.ParallelRequests = 3
	result := must.Get(b.Buy(t.Context()))(t)
	require.Equal(t, Won, result.Outcome)
	require.Equal(t, "sn-1", result.OrderSn)
}

func TestBuy_NotStartedIsRetried(t *testing.T) {
	answer := func(kind string, before int) (int, string) {
		if kind == "path" && before < 3 {
			return http.StatusConflict, "NOT_STARTED"
		}
		return 0, ""
	}
	_, b := startFakeAPI(t, answer)
	result := must.Get(b.Buy(t.Context()))(t)
	require.Equal(t, Refused, result.Outcome, "NOT_STARTED is final without NotStartedRetry")
	s, b := startFakeAPI(t, answer)
	b.NotStartedRetry = time.Millisecond
	result = must.Get(b.Buy(t.Context()))(t)
	require.Equal(t, Won, result.Outcome)
	require.Equal(t, 4, s.asked["path"], "three answers of NOT_STARTED were retried")
}

// TestBuy_TimesCountFromDue checks that the decision time and the first call's latency start at
// Due. Later calls start at the end of the previous call.
func TestBuy_TimesCountFromDue(t *testing.T) {
	_, b := startFakeAPI(t, nil)
	var first Call
	b.Due = time.Now().Add(-time.Hour)
	b.Patience = 2 * time.Hour
	b.OnCall = func(c Call) {
		if c.Step == StepPath {
			first = c
		} else {
			require.Less(t, c.Took, time.Minute, "%s counts from the end of the step before",
				c.Step)
		}
	}
	result := must.Get(b.Buy(t.Context()))(t)
	require.Greater(t, result.DecisionTime, time.Hour)
	require.Greater(t, first.Took, time.Hour)
}

// TestBuy_UncertainAfterErrorsOnly checks that an error or a 503 leaves the outcome unknown. A
// refusal is final.
func TestBuy_UncertainAfterErrorsOnly(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		reason string
		unsure bool
	}{
		"unavailable to the end": {503, "UNAVAILABLE", true},
		"sold out":               {409, "SOLD_OUT", false},
		"a fault":                {500, "INTERNAL", true},
	} {
		t.Run(name, func(t *testing.T) {
			_, b := startFakeAPI(t, func(kind string, _ int) (int, string) {
				if kind == "buy" {
					return c.status, c.reason
				}
				return 0, ""
			})
			b.Patience, b.MaxRetryWait = 50*time.Millisecond, time.Millisecond
			result, _ := b.Buy(t.Context())
			require.NotEqual(t, Won, result.Outcome)
			require.Equal(t, c.unsure, result.Uncertain)
		})
	}
}

func TestAttack_ReportsBreaches(t *testing.T) {
	captured := &Captured{}
	captured.AddPath(8, strings.Repeat("b", 32))
	captured.AddOrder(8, "sn-of-8")
	refuse := func(string, int) (int, string) { return http.StatusForbidden, "FORBIDDEN" }
	for name, c := range map[string]struct {
		answer   func(string, int) (int, string)
		breaches int
	}{"refused": {refuse, 0}, "let in": {nil, 5}} {
		t.Run(name, func(t *testing.T) {
			s, b := startFakeAPI(t, c.answer)
			steps := map[Step]int{}
			b.OnCall = func(c Call) { steps[c.Step]++ }
			breaches := b.Attack(t.Context(), captured)
			require.Len(t, breaches, c.breaches)
			require.Equal(t, map[Step]int{
				StepReplay: 1, StepForge: 1, StepReadOther: 1, StepCancelOther: 1,
				StepReadUnknown: 1,
			}, steps)
			require.Equal(t, 2, s.asked["buy"])
		})
	}
}

// TestCaptured_SkipsOwnValues checks that an attacker gets only other buyers' paths and orders, and
// that the store is bounded.
func TestCaptured_SkipsOwnValues(t *testing.T) {
	captured := &Captured{}
	captured.AddPath(7, "mine")
	path, sn := captured.ofOther(7, 3)
	require.Empty(t, path+sn)
	for i := range int64(3 * maxCaptured) {
		captured.AddPath(100+i, "other")
	}
	path, _ = captured.ofOther(7, 200)
	require.Equal(t, "other", path)
	require.Len(t, captured.paths, maxCaptured)
}
