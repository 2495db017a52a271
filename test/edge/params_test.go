package edge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/ratelimit"
	redislimit "flashsale.dev/seckill/internal/ratelimit/redis"
	"flashsale.dev/seckill/internal/testing/must"
)

// heardOf replaces a Redis and keeps the arguments of the last command.
type heardOf struct{ args []any }

func (h *heardOf) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h *heardOf) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (h *heardOf) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(_ context.Context, cmd redis.Cmder) error {
		h.args = cmd.Args()
		cmd.SetErr(errors.New("heard"))
		return cmd.Err()
	}
}

// inGo returns the API's arguments to the script for a limit: kind, cost, scale, free, cap, most.
func inGo(t *testing.T, l ratelimit.Limit) string {
	params := must.Get(l.Params())(t)
	client := redis.NewClient(&redis.Options{})
	defer client.Close()
	heard := &heardOf{}
	client.AddHook(heard)
	_, err := redislimit.New(client, nil).Peek(t.Context(),
		ratelimit.Request{Key: "k", Params: params, N: 1})
	require.Error(t, err)
	a := heard.args[3+1+1:] // the command, the SHA, the number of keys; the key; the clock
	return fmt.Sprint(a[2], " ", a[6], " ", a[7], " ", a[8], " ", a[9], " ", a[10])
}

// TestEdgeParams_EqualTheAPIs compares edge/params.lua with internal/ratelimit, number by number.
func TestEdgeParams_EqualTheAPIs(t *testing.T) {
	s := open(newAPI(t).addr()).with("exempt.conf", "geo $edge_exempt { default 0; }\n")
	e := start(t, withParams(s))
	for _, l := range []ratelimit.Limit{
		{
			Algorithm: ratelimit.Reserve, PermitsPerSecond: 1000, MaxBurstSeconds: 1,
			MaxWaitMillis: 1000,
		},
		{
			Algorithm: ratelimit.Reserve, PermitsPerSecond: 700, MaxBurstSeconds: 1.5,
			MaxWaitMillis: 250,
		},
		{
			Algorithm: ratelimit.Reserve, PermitsPerSecond: 0.3, MaxBurstSeconds: 0,
			MaxWaitMillis: 60000,
		},
		{Algorithm: ratelimit.Reserve, PermitsPerSecond: 100000, MaxBurstSeconds: 0.000001},
		{
			Algorithm: ratelimit.TokenBucket, PermitsPerSecond: 20, MaxBurstSeconds: 1,
			MaxWaitMillis: 5000,
		},
		{Algorithm: ratelimit.TokenBucket, PermitsPerSecond: 33.33, Burst: 7},
		{Algorithm: ratelimit.TokenBucket, PermitsPerSecond: 1e6, MaxBurstSeconds: 86400},
		{Algorithm: ratelimit.TokenBucket, PermitsPerSecond: 0.001, Burst: 10},
	} {
		text := must.Get(json.Marshal(l))(t)
		require.Equal(t, inGo(t, l), e.params(string(text)), string(text))
	}
	for _, l := range []ratelimit.Limit{
		{Algorithm: ratelimit.SmoothBursty, PermitsPerSecond: 10, MaxBurstSeconds: 1},
		{Algorithm: ratelimit.FixedWindow, Limit: 10, IntervalSeconds: 10},
		{Algorithm: ratelimit.TokenBucket, Limit: 10, IntervalSeconds: 10, Burst: 3},
		{Algorithm: ratelimit.TokenBucket, PermitsPerSecond: 0.1234567890123456, Burst: 3},
		{Algorithm: ratelimit.TokenBucket, PermitsPerSecond: 1e-7, Burst: 3},
	} {
		text := must.Get(json.Marshal(l))(t)
		require.Equal(t, "nil", e.params(string(text)), "left to the API: %s", text)
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
