package edge

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// zones defines the zones of all four keys, at one rate.
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

// rare grants one permit a minute: none is added while a test runs. Counts at this rate are exact.
const rare = "1r/m"

func limits(lines ...string) string {
	return noLimits + "\nlimit_req " + strings.Join(lines, ";\nlimit_req ") + ";\n"
}

// limitedBy is an edge that limits requests for random paths, at the rate rare.
func limitedBy(t *testing.T, lines ...string) *edge {
	return start(t, open(newAPI(t).addr()).with("zones.conf", zones(rare)).
		with("limits_path.conf", limits(lines...)))
}

// TestLimit_TwoASecondWithBursts sends ten requests at once to a limit of two a second. The burst
// is exact. The elapsed time limits the number of further permits.
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

// TestLimit_EachKeyHasItsOwn checks that each address, user and goods has its own limit.
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
		"address of IPv4 in IPv6": {func(e *edge, i int) answer {
			return e.path("1", from(fmt.Sprintf("::ffff:203.0.113.%d", i%2))...)
		}, 4},
		// One subscriber has a whole /64.
		"address of IPv6": {func(e *edge, i int) answer { return e.path("1", v6(i)...) }, 2},
		// All spellings of a goods id share one limit.
		"goods however written": {func(e *edge, i int) answer {
			return e.path([]string{"12", "%312", "1%32", "%31%32"}[i%4])
		}, 2},
		// A request without a token has no key, so only the other limits apply.
		"user without a token": {func(e *edge, _ int) answer { return e.path("1") }, 8},
		// The pages have the token in a cookie.
		"user, of a session": {func(e *edge, i int) answer {
			return e.path("1", session(e.t, int64(1+i%2))...)
		}, 4},
		"user, of a session over TLS": {func(e *edge, i int) answer {
			return e.path("1", secureSession(e.t, int64(1+i%2))...)
		}, 4},
		// The scheme of the header has no case (RFC 9110, 11.1).
		"user, however written": {func(e *edge, i int) answer {
			h := buyerHeaders(e.t, 1)
			h[1] = []string{"Bearer", "bearer", "BEARER", "bEaReR"}[i%4] + h[1][len("Bearer"):]
			return e.path("1", h...)
		}, 2},
		// A forged token uses up no permit of the user that it names.
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

// TestLimit_ExemptAddressIsNotCounted checks that an exempt address has no limit, but its user has.
func TestLimit_ExemptAddressIsNotCounted(t *testing.T) {
	e := limitedBy(t, "zone=address", "zone=user")
	for range 3 {
		require.Equal(t, "OK", e.path("1", from("10.213.7.9")...).Reason)
	}
	who := append(buyerHeaders(t, 1), from("10.213.7.9")...)
	require.Equal(t, "OK", e.path("1", who...).Reason)
	limited(t, e.path("1", who...))
}

// TestLimit_StrictestOfSeveralHolds checks that the strictest limit decides. A request that it
// denies uses up no permit of the others.
func TestLimit_StrictestOfSeveralHolds(t *testing.T) {
	e := limitedBy(t, "zone=user nodelay burst=1", "zone=goods burst=3 nodelay")
	for range 5 {
		e.path("1", buyerHeaders(t, 1)...)
	}
	require.Equal(t, "OK", e.path("1", buyerHeaders(t, 2)...).Reason)
	require.Equal(t, "OK", e.path("1", buyerHeaders(t, 3)...).Reason)
	limited(t, e.path("1", buyerHeaders(t, 4)...))
}

// TestLimit_OtherRoutesHaveTheirs checks that purchases and all other routes have their own limits.
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

// TestForwardedFor_OnlyTrustedProxiesAreBelieved checks that only a trusted proxy can set the
// client's address. The API gets one address, which the edge sets.
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
		"the address that the last proxy reports")
	require.Empty(t, api.lastHeader().Values("X-Real-IP"))
}

// TestForwardedProto_OnlyTrustedProxiesAreBelieved checks that the API gets the scheme of the
// browser's own connection, which decides whether its session's cookie is for TLS only.
func TestForwardedProto_OnlyTrustedProxiesAreBelieved(t *testing.T) {
	api := newAPI(t)
	s := open(api.addr())
	e := start(t, s)
	schemeOf := func(headers ...string) []string {
		require.Equal(t, "OK", e.ask("GET", "/sales", headers...).Reason)
		return api.lastHeader().Values("X-Forwarded-Proto")
	}
	proxied := from("203.0.113.1")
	require.Equal(t, []string{"https"}, schemeOf(append(proxied, "X-Forwarded-Proto", "https")...))
	for _, other := range []string{"http", "ftp", "https, http", ""} {
		require.Equal(t, []string{"http"}, schemeOf(append(proxied, "X-Forwarded-Proto", other)...))
	}
	delete(s, "trusted.conf") // as it is deployed
	e = start(t, s)
	require.Equal(t, []string{"http"}, schemeOf(append(proxied, "X-Forwarded-Proto", "https")...))
}
