package edge

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/ratelimit"
	"flashsale.dev/seckill/internal/testing/must"
)

// TestEdgeParams_EqualTheAPIs compares edge/params.lua with internal/ratelimit, number by number.
// The edge leaves the second list to the API.
func TestEdgeParams_EqualTheAPIs(t *testing.T) {
	s := open(newAPI(t).addr()).with("exempt.conf", "geo $edge_exempt { default 0; }\n")
	e := start(t, withParams(s))
	for _, text := range []string{
		`{"algorithm":"reserve","permitsPerSecond":1000,"maxBurstSeconds":1,"maxWaitMillis":1000}`,
		`{"algorithm":"reserve","permitsPerSecond":700,"maxBurstSeconds":1.5,"maxWaitMillis":250}`,
		`{"algorithm":"reserve","permitsPerSecond":0.3,"maxWaitMillis":60000}`,
		`{"algorithm":"reserve","permitsPerSecond":100000,"maxBurstSeconds":0.000001}`,
		`{"algorithm":"token_bucket","permitsPerSecond":20,"maxBurstSeconds":1,"maxWaitMillis":5}`,
		`{"algorithm":"token_bucket","permitsPerSecond":33.33,"burst":7}`,
		`{"algorithm":"token_bucket","permitsPerSecond":1000000,"maxBurstSeconds":86400}`,
		`{"algorithm":"token_bucket","permitsPerSecond":0.001,"burst":10}`,
	} {
		var l ratelimit.Limit
		require.NoError(t, json.Unmarshal([]byte(text), &l))
		p := must.Get(l.Params())(t)
		require.Equal(t, fmt.Sprint(p.Kind, " ", p.Cost, " ", p.Scale, " ", p.Free, " ", p.Cap, " ",
			p.MaxPermits), e.params(text), text)
	}
	for _, text := range []string{
		`{"algorithm":"smooth_bursty","permitsPerSecond":10,"maxBurstSeconds":1}`,
		`{"algorithm":"fixed_window","limit":10,"intervalSeconds":10}`,
		`{"algorithm":"token_bucket","limit":10,"intervalSeconds":10,"burst":3}`,
		`{"algorithm":"token_bucket","permitsPerSecond":0.1234567890123456,"burst":3}`,
		`{"algorithm":"token_bucket","permitsPerSecond":1e-7,"burst":3}`,
	} {
		require.Equal(t, "nil", e.params(text), text)
	}
}

// withParams adds a location that returns the edge's parameters of a limit.
func withParams(s site) site {
	return s.with("limits_other.conf", noLimits).with("listen_more", `
	location = /test/params {
		content_by_lua_block {
			local t = require("edge.params").of_json(ngx.req.get_uri_args().limit)
			if not t then return ngx.print("nil") end
			local function n(v) return string.format("%.0f", v) end
			ngx.print(table.concat({ t.kind, n(t.cost), n(t.scale), n(t.free), n(t.cap), n(t.max) }, " "))
		}
	}
`)
}

func (e *edge) params(limit string) string {
	resp := must.Get(http.Get(e.base + "/test/params?limit=" + url.QueryEscape(limit)))(e.t)
	defer resp.Body.Close()
	body := must.Get(io.ReadAll(resp.Body))(e.t)
	return strings.TrimSpace(string(body))
}
