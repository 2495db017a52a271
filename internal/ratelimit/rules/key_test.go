package rules_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/ratelimit"
	"flashsale.dev/seckill/internal/ratelimit/rules"
)

// TestKey_OfEachAttribute checks keys of valid and of missing attributes, "" for a missing one.
func TestKey_OfEachAttribute(t *testing.T) {
	b := book(t, `
rules:
  - {name: goods, by: [goods]}
  - {name: user, by: [user]}
  - {name: ip, by: [ip]}
  - {name: route, by: [route]}
  - {name: header, by: ["header:X-Shop"]}
  - {name: global, by: [global]}
  - {name: several, by: [goods, user]}
`)
	ip := func(text string) func() netip.Addr {
		return func() netip.Addr { addr, _ := netip.ParseAddr(text); return addr }
	}
	header := func(value string) func(string) string {
		return func(name string) string { return map[string]string{"X-Shop": value}[name] }
	}
	longest := strings.Repeat("u", 64)
	for _, c := range []struct {
		rule, want string
		attrs      rules.Attributes
	}{
		{"goods", "7", rules.Attributes{Goods: 7}},
		{"goods", "", rules.Attributes{}},
		{"goods", "", rules.Attributes{Goods: -1}},
		{"user", "azAZ09-_./|@+=~", rules.Attributes{User: "azAZ09-_./|@+=~"}},
		{"user", longest, rules.Attributes{User: longest}},
		{"user", rules.HashKey(longest + "u"), rules.Attributes{User: longest + "u"}},
		{"user", rules.HashKey("a:"), rules.Attributes{User: "a:"}},
		{"user", rules.HashKey("[`{"), rules.Attributes{User: "[`{"}},
		{"user", rules.HashKey("!"), rules.Attributes{User: "!"}},
		{"user", "", rules.Attributes{}},
		{"ip", "10.0.0.1", rules.Attributes{IP: ip("::ffff:10.0.0.1")}},
		{"ip", "2001:db8::/64", rules.Attributes{IP: ip("2001:db8::1%eth0")}},
		{"ip", "", rules.Attributes{IP: ip("nowhere")}},
		{"ip", "", rules.Attributes{}},
		{"route", "/orders", rules.Attributes{Route: "/orders"}},
		{"route", "", rules.Attributes{}},
		{"header", "tea", rules.Attributes{Header: header("tea")}},
		{"header", "", rules.Attributes{Header: header("")}},
		{"header", "", rules.Attributes{}},
		{"global", "all", rules.Attributes{}},
		{"several", "7:u", rules.Attributes{Goods: 7, User: "u"}},
		{"several", "", rules.Attributes{Goods: 7}},
	} {
		key, ok := ruleNamed(t, b, c.rule).Key(&c.attrs)
		require.Equal(t, c.want, key, "%s %+v", c.rule, c.attrs)
		require.Equal(t, c.want != "", ok, "%s %+v", c.rule, c.attrs)
	}
}

// TestRedisKey_IsTheSameInAllReleases holds the names of keys, which all releases share. Each name
// is asked for twice, because the rule keeps the names of hot keys.
func TestRedisKey_IsTheSameInAllReleases(t *testing.T) {
	b := book(t, `{rules: [{name: g, by: [goods, user]}, {name: u, by: [user]}]}`)
	for range 2 {
		for _, c := range []struct {
			rule, key string
			kind      ratelimit.Kind
			want      string
		}{
			{"g", "7", ratelimit.KindBucket, "{7}:ratelimit:g:7"},
			{"g", "7", ratelimit.KindBursty, "{7}:ratelimit:g:7"},
			{"g", "7", ratelimit.KindFixed, "{7}:ratelimit-f:g:7"},
			{"g", "7:alice", ratelimit.KindLog, "{7}:ratelimit-l:g:7:alice"},
			{"g", "-", ratelimit.KindBucket, "ratelimit:{g:-}"},
			{"u", "alice", ratelimit.KindBucket, "ratelimit:{u:alice}"},
			{"u", "alice", ratelimit.KindSliding, "ratelimit-w:{u:alice}"},
		} {
			require.Equal(t, c.want, ruleNamed(t, b, c.rule).RedisKey(c.key, c.kind))
		}
	}
}
