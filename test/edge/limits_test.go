package edge

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// zones counts by all four keys, at one rate.
func zones(rate string) string {
	var b strings.Builder
	b.WriteString("limit_req_status 429;\n")
	for key, name := range map[string]string{
		"$edge_address": "address", "$edge_user": "user",
		"$edge_goods": "goods", "$server_name": "server",
	} {
		fmt.Fprintf(&b, "limit_req_zone %s zone=%s:1m rate=%s;\n", key, name, rate)
	}
	return b.String()
}

// rare refills nothing while a test runs: one permit a minute. Counts at it are exact.
const rare = "1r/m"

func limits(lines ...string) string {
	return noLimits + "\nlimit_req " + strings.Join(lines, ";\nlimit_req ") + ";\n"
}

// limitedBy is an edge that limits requests for random paths, at the rate rare.
func limitedBy(t *testing.T, lines ...string) *edge {
	return start(t, open(newAPI(t).addr()).with("zones.conf", zones(rare)).
		with("limits_path.conf", limits(lines...)))
}

// TestLimit_TwoASecondWithBursts sends ten at once to a limit of two a second. What the burst lets
// through is exact; beyond that at most what the time that passed has earned.
func TestLimit_TwoASecondWithBursts(t *testing.T) {
	for name, c := range map[string]struct {
		how     string
		burst   int
		delayed bool
	}{
		"no burst":             {"", 0, false},
		"burst at once":        {"burst=3 nodelay", 3, false},
		"burst in line":        {"burst=3", 3, true},
		"two at once, of four": {"burst=4 delay=2", 4, true},
	} {
		t.Run(name, func(t *testing.T) {
			api := newAPI(t)
			e := start(t, open(api.addr()).with("zones.conf",
				zones("2r/s")).with("limits_path.conf", limits("zone=goods "+c.how)))
			began := time.Now()
			got := e.crowd(10, func(int) answer { return e.path("1") })
			earned := int(math.Ceil(2 * time.Since(began).Seconds()))
			require.Equal(t, 10, got["OK"]+got["RATE_LIMITED"], got)
			require.GreaterOrEqual(t, got["OK"], 1+c.burst, got)
			require.LessOrEqual(t, got["OK"], 1+c.burst+earned, got)
			require.EqualValues(t, got["OK"], api.heard.Load(),
				"what is refused must not reach the API")
			delayed := func() bool {
				return strings.Contains(e.nginx.Log(), `"limit_req":"DELAYED"`)
			}
			if c.delayed { // nginx logs after it has answered
				require.Eventually(t, delayed, patience, tick)
			} else {
				require.False(t, delayed(), e.nginx.Log())
			}
		})
	}
}

func TestLimit_EachKeyHasItsOwn(t *testing.T) {
	v4 := func(last int) []string { return from(fmt.Sprintf("203.0.113.%d", last)) }
	v6 := func(last int) []string { return from(fmt.Sprintf("2001:db8:1:2::%d", last)) }
	for zone, c := range map[string]struct {
		ask    func(e *edge, i int) answer // four of each of two keys
		passed int                         // with burst=1 nodelay: two of each key
	}{
		"address": {func(e *edge, i int) answer { return e.path("1", v4(i%2)...) }, 4},
		"user": {func(e *edge, i int) answer {
			return e.path("1", buyerHeaders(e.t, int64(1+i%2))...)
		}, 4},
		"goods":  {func(e *edge, i int) answer { return e.path(fmt.Sprint(1 + i%2)) }, 4},
		"server": {func(e *edge, i int) answer { return e.path(fmt.Sprint(1+i), v4(i)...) }, 2},
		// One subscriber has a whole /64.
		"address of IPv6": {func(e *edge, i int) answer { return e.path("1", v6(i)...) }, 2},
		// However a goods is written, it is the same.
		"goods however written": {func(e *edge, i int) answer {
			return e.path([]string{"12", "%312", "1%32", "%31%32"}[i%4])
		}, 2},
		// No token, no key: only the other limits hold.
		"user without a token": {func(e *edge, _ int) answer { return e.path("1") }, 8},
		// A forged token names somebody and does not use up what is theirs.
		"user, forged": {func(e *edge, i int) answer {
			h := buyerHeaders(e.t, 1)
			if i < 4 {
				h[1] = h[1][:len(h[1])-8] + "forgedAA"
			}
			return e.path("1", h...)
		}, 4},
	} {
		t.Run(zone, func(t *testing.T) {
			name, _, _ := strings.Cut(zone, " ")
			line := "zone=" + strings.TrimSuffix(name, ",") + " burst=1 nodelay"
			e := limitedBy(t, line)
			var answers []answer
			for i := range 8 {
				answers = append(answers, c.ask(e, i))
			}
			require.Equal(t, c.passed, countAnswers(answers...)["OK"], countAnswers(answers...))
		})
	}
}

func TestLimit_ExemptAddressIsNotCounted(t *testing.T) {
	e := limitedBy(t, "zone=address", "zone=user")
	for range 3 {
		require.Equal(t, "OK", e.path("1", from("10.213.7.9")...).Reason)
	}
	who := append(buyerHeaders(t, 1), from("10.213.7.9")...)
	require.Equal(t, "OK", e.path("1", who...).Reason)
	limited(t, e.path("1", who...))
}

// The strictest of several holds, and what it refuses uses up nothing of the others.
func TestLimit_StrictestOfSeveralHolds(t *testing.T) {
	e := limitedBy(t, "zone=user nodelay burst=1", "zone=goods burst=3 nodelay")
	for range 5 {
		e.path("1", buyerHeaders(t, 1)...)
	}
	require.Equal(t, "OK", e.path("1", buyerHeaders(t, 2)...).Reason)
	require.Equal(t, "OK", e.path("1", buyerHeaders(t, 3)...).Reason)
	limited(t, e.path("1", buyerHeaders(t, 4)...))
}

func TestLimit_OtherRoutesHaveTheirs(t *testing.T) {
	e := start(t, open(newAPI(t).addr()).with("zones.conf", zones(rare)).
		with("limits_buy.conf", limits("zone=user")).with("limits_other.conf",
		limits("zone=address")))
	path := "/" + strings.Repeat("0a", 16) + "/decrStock?goodsId=1"
	require.Equal(t, "OK", e.ask("POST", path, buyerHeaders(t, 1)...).Reason)
	limited(t, e.ask("POST", path, buyerHeaders(t, 1)...))
	require.Equal(t, "OK", e.ask("GET", "/sales").Reason)
	limited(t, e.ask("GET", "/orders"))
	require.Equal(t, "OK", e.path("1").Reason)
}

// Nobody chooses an address unless the edge is configured to believe them; and the API hears one
// address, the edge's word.
func TestForwardedFor_OnlyTrustedProxiesAreBelieved(t *testing.T) {
	api := newAPI(t)
	s := open(api.addr()).with("zones.conf", zones(rare)).with("limits_path.conf",
		limits("zone=address"))
	delete(s, "trusted.conf") // as it is deployed
	e := start(t, s)
	require.Equal(t, "OK", e.path("1", from("203.0.113.1")...).Reason)
	require.Equal(t, []string{"127.0.0.1"}, api.lastHeader().Values("X-Forwarded-For"))
	limited(t, e.path("1", from("203.0.113.2")...))

	e = start(t, open(api.addr()))
	require.Equal(t, "OK",
		e.path("1", "X-Forwarded-For", "198.51.100.7, 203.0.113.1", "X-Real-IP",
			"198.51.100.7").Reason)
	require.Equal(t, []string{"203.0.113.1"}, api.lastHeader().Values("X-Forwarded-For"),
		"the last proxy's word")
	require.Empty(t, api.lastHeader().Values("X-Real-IP"))
}
