package buyer

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"flashsale.dev/seckill/internal/loadgen/apiclient"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// shop is an API that answers as a test tells it to, and counts what it is asked.
type shop struct {
	mu    sync.Mutex
	asked map[string]int
	// answer takes the call's kind and how often it has been asked before; "" is the usual answer, a status of 0.
	answer func(kind string, before int) (status int, reason string)
}

func (s *shop) ServeHTTP(w http.ResponseWriter, r *http.Request) {
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
	data := map[string]string{"randomPath": strings.Repeat("a", 32), "orderSn": "sn-1", "status": "created"}
	if status == 0 {
		status, reason = map[string]int{"path": 200, "buy": 202, "order": 200, "cancel": 200}[kind], "OK"
	}
	w.Header().Set("Retry-After", "1")
	w.WriteHeader(status)
	text, _ := json.Marshal(data)
	fmt.Fprintf(w, `{"code": %d, "reason": %q, "data": %s}`, status, reason, text)
}

func openShop(t *testing.T, answer func(kind string, before int) (int, string)) (*shop, Buyer) {
	t.Helper()
	s := &shop{asked: map[string]int{}, answer: answer}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	d := NewDirect(DirectOptions{Conns: 8})
	t.Cleanup(d.CloseIdleConnections)
	return s, Buyer{
		Client: apiclient.Client{Base: server.URL, HTTP: d.Client()}, ID: 7, GoodsID: "1", Quantity: 1,
		Patience: 10 * time.Second, Stubborn: true,
	}
}

func TestAnImpatientBuyerClicksAndDoesNotWait(t *testing.T) {
	s, b := openShop(t, func(kind string, before int) (int, string) {
		if kind == "path" && before == 0 {
			return http.StatusTooManyRequests, "RATE_LIMITED"
		}
		return 0, ""
	})
	b.Clicks, b.Hurry = 3, time.Millisecond
	told, err := b.Buy(t.Context())
	require.NoError(t, err)
	require.Equal(t, Won, told.Outcome)
	require.Len(t, told.Heard, 3)
	require.Equal(t, 1, told.Limited)
	require.Less(t, told.Bought, time.Second, "it waited as long as it was told")
	require.Equal(t, 3, s.asked["buy"])
}

// One of three clicks gets through: that is a yes, whatever the others heard.
func TestOneClickIsEnough(t *testing.T) {
	_, b := openShop(t, func(kind string, before int) (int, string) {
		if kind == "buy" && before != 1 {
			return http.StatusConflict, "SOLD_OUT"
		}
		return 0, ""
	})
	b.Clicks = 3
	told, err := b.Buy(t.Context())
	require.NoError(t, err)
	require.Equal(t, Won, told.Outcome)
	require.Equal(t, "sn-1", told.OrderSn)
}

func TestWhoComesBeforeTheSaleWaitsForIt(t *testing.T) {
	answer := func(kind string, before int) (int, string) {
		if kind == "path" && before < 3 {
			return http.StatusConflict, "NOT_STARTED"
		}
		return 0, ""
	}
	_, b := openShop(t, answer)
	told, err := b.Buy(t.Context())
	require.NoError(t, err)
	require.Equal(t, Refused, told.Outcome, "without Early it is a no")
	_, b = openShop(t, answer)
	b.Early = time.Millisecond
	told, err = b.Buy(t.Context())
	require.NoError(t, err)
	require.Equal(t, Won, told.Outcome)
	require.Equal(t, 3, told.Early)
}

func TestTimesRunFromWhenABuyerWasDue(t *testing.T) {
	_, b := openShop(t, nil)
	var first Call
	b.Due = time.Now().Add(-time.Hour)
	b.Patience = 2 * time.Hour
	b.Saw = func(c Call) {
		if c.Step == StepPath {
			first = c
		} else {
			require.Less(t, c.Took, time.Minute, "%s was due when the step before it had ended", c.Step)
		}
	}
	told, err := b.Buy(t.Context())
	require.NoError(t, err)
	require.Greater(t, told.Bought, time.Hour)
	require.Greater(t, first.Took, time.Hour)
}

// A buyer whose call had no certain end may have an order without knowing; one who was told no has none.
func TestUnsureAreThoseWhoCannotKnow(t *testing.T) {
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
			_, b := openShop(t, func(kind string, _ int) (int, string) {
				if kind == "buy" {
					return c.status, c.reason
				}
				return 0, ""
			})
			b.Patience, b.Hurry = 50*time.Millisecond, time.Millisecond
			told, _ := b.Buy(t.Context())
			require.NotEqual(t, Won, told.Outcome)
			require.Equal(t, c.unsure, told.Unsure)
		})
	}
}

func TestThievesTellWhatTheyGotAwayWith(t *testing.T) {
	loot := &Loot{}
	loot.Path(8, strings.Repeat("b", 32))
	loot.Order(8, "sn-of-8")
	refuse := func(string, int) (int, string) { return http.StatusForbidden, "FORBIDDEN" }
	for name, c := range map[string]struct {
		answer   func(string, int) (int, string)
		breaches int
	}{"refused": {refuse, 0}, "let in": {nil, 5}} {
		t.Run(name, func(t *testing.T) {
			s, b := openShop(t, c.answer)
			steps := map[Step]int{}
			breaches := Thief{Client: b.Client, ID: 7, GoodsID: "1", Loot: loot, Saw: func(c Call) { steps[c.Step]++ }}.Rob(t.Context())
			require.Len(t, breaches, c.breaches)
			require.Equal(t, map[Step]int{StepReplay: 1, StepForge: 1, StepSpy: 1, StepSpoil: 1, StepInvent: 1}, steps)
			require.Equal(t, 2, s.asked["buy"])
		})
	}
}

func TestAThiefLeavesItsOwnAlone(t *testing.T) {
	loot := &Loot{}
	loot.Path(7, "mine")
	path, sn := loot.pick(7, 3)
	require.Empty(t, path+sn)
	for i := range int64(3 * ringSize) {
		loot.Path(100+i, "other")
	}
	path, _ = loot.pick(7, 200)
	require.Equal(t, "other", path)
	require.Len(t, loot.paths.kept, ringSize)
}
