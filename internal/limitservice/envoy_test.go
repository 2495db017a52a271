package limitservice_test

import (
	"context"
	"io"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	descriptorv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"flashsale.dev/seckill/internal/testing/must"
	"flashsale.dev/seckill/internal/testing/servers"
)

const (
	allowed = ratelimitv3.RateLimitResponse_OK
	denied  = ratelimitv3.RateLimitResponse_OVER_LIMIT
)

// codesOf are the codes of a response: all together, and each descriptor's.
func codesOf(r *ratelimitv3.RateLimitResponse) []ratelimitv3.RateLimitResponse_Code {
	all := []ratelimitv3.RateLimitResponse_Code{r.GetOverallCode()}
	for _, s := range r.GetStatuses() {
		all = append(all, s.GetCode())
	}
	return all
}

func codeList(codes ...ratelimitv3.RateLimitResponse_Code) []ratelimitv3.RateLimitResponse_Code {
	return codes
}

func headers(r *ratelimitv3.RateLimitResponse) map[string]string {
	all := map[string]string{}
	for _, h := range r.GetResponseHeadersToAdd() {
		all[h.GetKey()] = h.GetValue()
	}
	return all
}

func TestEnvoy_DecidesDescriptors(t *testing.T) {
	s := start(t, servers.Redis(t))

	t.Run("a status for each", func(t *testing.T) {
		r := s.decide(t, descriptor("client=a"), descriptor("unknown=x"), descriptor("window=w"))
		assert.Equal(t, codeList(allowed, allowed, allowed, allowed), codesOf(r))
		first, none, window := r.GetStatuses()[0], r.GetStatuses()[1], r.GetStatuses()[2]
		assert.EqualValues(t, 4, first.GetLimitRemaining())
		assert.Equal(t, 24*time.Hour, first.GetDurationUntilReset().AsDuration())
		assert.Equal(t, "client", first.GetCurrentLimit().GetName())
		assert.EqualValues(t, 1, first.GetCurrentLimit().GetRequestsPerUnit())
		assert.Equal(t, ratelimitv3.RateLimitResponse_RateLimit_DAY,
			first.GetCurrentLimit().GetUnit())
		assert.Nil(t, none.GetCurrentLimit())
		assert.EqualValues(t, 2, window.GetLimitRemaining())
		assert.EqualValues(t, 3, window.GetCurrentLimit().GetRequestsPerUnit())
		assert.Equal(t, map[string]string{
			"RateLimit":        `"client";r=4;t=86400, "window";r=2;t=86400`,
			"RateLimit-Policy": `"client";q=5;w=432000, "window";q=3;w=86400`,
		}, headers(r))
	})
	t.Run("nested entries and fixed values", func(t *testing.T) {
		names := func(d *descriptorv3.RateLimitDescriptor) string {
			return s.decide(t, d).GetStatuses()[0].GetCurrentLimit().GetName()
		}
		assert.Equal(t, "client", names(descriptor("client=nested")))
		assert.Equal(t, "path", names(descriptor("client=nested", "path=/x")))
		assert.Equal(t, "login", names(descriptor("client=nested", "path=/login")))
		assert.Equal(t, "partner", names(descriptor("client=partner")))
		assert.Empty(t, names(descriptor("path=/x", "client=nested")))
		assert.Empty(t, names(descriptor("client=nested", "path=/x", "more=1")))
		other := must.Get(s.envoy.ShouldRateLimit(t.Context(), &ratelimitv3.RateLimitRequest{
			Domain:      "mesh",
			Descriptors: []*descriptorv3.RateLimitDescriptor{descriptor("client=partner")},
		}))(t)
		assert.Equal(t, "client", other.GetStatuses()[0].GetCurrentLimit().GetName())
	})
	t.Run("every value has its own permits", func(t *testing.T) {
		for _, path := range []string{"path=/1", "path=/2"} {
			for left := 4; left >= 0; left-- {
				got := s.decide(t, descriptor("client=v", path)).GetStatuses()[0]
				assert.EqualValues(t, left, got.GetLimitRemaining())
			}
			assert.Equal(t, denied, s.decide(t, descriptor("client=v", path)).GetOverallCode())
		}
	})
	t.Run("hits_addend", func(t *testing.T) {
		ask := func(request uint32, own *wrapperspb.UInt64Value) *ratelimitv3.RateLimitResponse {
			d := descriptor("client=hits")
			d.HitsAddend = own
			return must.Get(s.envoy.ShouldRateLimit(t.Context(), &ratelimitv3.RateLimitRequest{
				Domain: "edge", HitsAddend: request,
				Descriptors: []*descriptorv3.RateLimitDescriptor{d},
			}))(t)
		}
		remaining := func(r *ratelimitv3.RateLimitResponse) uint32 {
			return r.GetStatuses()[0].GetLimitRemaining()
		}
		assert.EqualValues(t, 3, remaining(ask(2, nil)))
		assert.EqualValues(t, 3, remaining(ask(2, wrapperspb.UInt64(0))), "0 reads")
		assert.EqualValues(t, 2, remaining(ask(9, wrapperspb.UInt64(1))))
		assert.Equal(t, codeList(denied, denied), codesOf(ask(3, nil)))
		assert.EqualValues(t, 0, remaining(ask(2, nil)), "the denied request took nothing")
		assert.Equal(t, denied, ask(1, wrapperspb.UInt64(0)).GetOverallCode(), "nothing is left")
		never := ask(1, wrapperspb.UInt64(100))
		assert.Equal(t, denied, never.GetOverallCode())
		assert.NotContains(t, headers(never), "Retry-After")
	})
	t.Run("is_negative_hits returns permits", func(t *testing.T) {
		for name, total := range map[string]int{
			"client=credit": 5, "window=credit": 3, "node=credit": 4,
		} {
			require.EqualValues(t, total-1,
				s.decide(t, descriptor(name)).GetStatuses()[0].GetLimitRemaining())
			s.decide(t, descriptor(name))
			for _, left := range []int{total - 1, total, total} {
				back := descriptor(name)
				back.IsNegativeHits = true
				got := s.decide(t, back)
				assert.Equal(t, codeList(allowed, allowed), codesOf(got), name)
				assert.EqualValues(t, left, got.GetStatuses()[0].GetLimitRemaining(), name)
			}
			back := descriptor(name)
			back.IsNegativeHits, back.HitsAddend = true, wrapperspb.UInt64(2)
			for range 2 {
				s.decide(t, descriptor(name))
			}
			assert.EqualValues(t, total,
				s.decide(t, back).GetStatuses()[0].GetLimitRemaining(), name)
			for range total {
				assert.Equal(t, allowed, s.decide(t, descriptor(name)).GetOverallCode(), name)
			}
			assert.Equal(t, denied, s.decide(t, descriptor(name)).GetOverallCode(), name)
			s.decide(t, back)
			assert.Equal(t, allowed, s.decide(t, descriptor(name)).GetOverallCode(),
				"no cached denial")
		}
	})
	t.Run("one of several is denied", func(t *testing.T) {
		for range 2 {
			require.Equal(t, allowed,
				s.decide(t, descriptor("client=d", "path=/login")).GetOverallCode())
		}
		ask := func() *ratelimitv3.RateLimitResponse {
			return s.decide(t, descriptor("client=d"), descriptor("client=d", "path=/login"),
				descriptor("window=d"))
		}
		r := ask()
		assert.Equal(t, codeList(denied, allowed, denied, allowed), codesOf(r))
		assert.Equal(t, "too many attempts", string(r.GetRawBody()))
		assert.Equal(t, uint32(0), r.GetStatuses()[1].GetLimitRemaining())
		assert.Positive(t, r.GetStatuses()[1].GetDurationUntilReset().AsDuration())
		assert.NotEmpty(t, headers(r)["Retry-After"])
		window := s.decide(t, descriptor("window=d")).GetStatuses()[0]
		assert.EqualValues(t, 2, window.GetLimitRemaining(), "nothing was taken behind a denial")
		read := descriptor("client=d")
		read.HitsAddend = wrapperspb.UInt64(0)
		began := time.Now() // refunds do not delay the answer
		for s.decide(t, read).GetStatuses()[0].GetLimitRemaining() < 5 {
			require.Less(t, time.Since(began), time.Minute, "permits were not returned")
		}
	})
	t.Run("no wait", func(t *testing.T) {
		assert.Equal(t, allowed, s.decide(t, descriptor("slow=x")).GetOverallCode())
		assert.Equal(t, denied, s.decide(t, descriptor("slow=x")).GetOverallCode())
	})
	t.Run("shadow", func(t *testing.T) {
		for range 3 {
			assert.Equal(t, codeList(allowed, allowed),
				codesOf(s.decide(t, descriptor("shadow=x"))))
		}
		assert.EqualValues(t, 2, s.Metric(t,
			`seckill_limiter_events_total{event="dry_run",rule="shadow"}`))
	})
	t.Run("Envoy's own limit", func(t *testing.T) {
		d := descriptor("client=override")
		d.Limit = &descriptorv3.RateLimitDescriptor_RateLimitOverride{
			RequestsPerUnit: 2, Unit: typev3.RateLimitUnit_HOUR,
		}
		r := s.decide(t, d)
		assert.EqualValues(t, 1, r.GetStatuses()[0].GetLimitRemaining())
		assert.EqualValues(t, 2, r.GetStatuses()[0].GetCurrentLimit().GetRequestsPerUnit())
		assert.Equal(t, ratelimitv3.RateLimitResponse_RateLimit_HOUR,
			r.GetStatuses()[0].GetCurrentLimit().GetUnit())
	})
}

func TestEnvoy_RejectsInvalidRequests(t *testing.T) {
	s := start(t, servers.Redis(t))
	yearly := descriptor("client=a")
	yearly.Limit = &descriptorv3.RateLimitDescriptor_RateLimitOverride{
		RequestsPerUnit: 2, Unit: typev3.RateLimitUnit_YEAR,
	}
	zero := descriptor("client=a")
	zero.Limit = &descriptorv3.RateLimitDescriptor_RateLimitOverride{
		Unit: typev3.RateLimitUnit_DAY,
	}
	one := func(d *descriptorv3.RateLimitDescriptor) *ratelimitv3.RateLimitRequest {
		return &ratelimitv3.RateLimitRequest{
			Domain:      "edge",
			Descriptors: []*descriptorv3.RateLimitDescriptor{descriptor("window=w"), d},
		}
	}
	noDomain := one(descriptor("client=a"))
	noDomain.Domain = ""
	for name, req := range map[string]*ratelimitv3.RateLimitRequest{
		"domain": noDomain, "descriptors": {Domain: "edge"}, "entries": one(descriptor()),
		"limit.unit": one(yearly), "limit": one(zero),
	} {
		_, err := s.envoy.ShouldRateLimit(t.Context(), req)
		assert.Equal(t, codes.InvalidArgument, status.Code(err), name)
		assert.ErrorContains(t, err, name)
	}
	many := &ratelimitv3.RateLimitRequest{Domain: "edge"}
	for range 64 {
		many.Descriptors = append(many.Descriptors, descriptor("unknown=x"))
	}
	must.Get(s.envoy.ShouldRateLimit(t.Context(), many))(t)
	many.Descriptors = append(many.Descriptors, descriptor("unknown=x"))
	_, err := s.envoy.ShouldRateLimit(t.Context(), many)
	assert.Equal(t, codes.InvalidArgument, status.Code(err))
	window := s.decide(t, descriptor("window=w")).GetStatuses()[0]
	assert.EqualValues(t, 2, window.GetLimitRemaining(), "an invalid request takes nothing")
}

// TestEnvoy_LimitDecidesAnyNumberOfHits checks that no number is an error, on which Envoy would
// admit the request, and that one above the limit takes nothing.
func TestEnvoy_LimitDecidesAnyNumberOfHits(t *testing.T) {
	redis := servers.Redis(t)
	s := start(t, redis)
	ask := func(name string, hits uint64, negative bool) *ratelimitv3.RateLimitResponse {
		d := descriptor(name)
		d.HitsAddend, d.IsNegativeHits = wrapperspb.UInt64(hits), negative
		return s.decide(t, d)
	}
	huge := []uint64{1 << 31, 1 << 40, 1 << 63, math.MaxUint64}
	totals := map[string]int{"client=big": 5, "window=big": 3, "node=big": 4}
	for name, total := range totals {
		for _, hits := range huge {
			assert.Equal(t, denied, ask(name, hits, false).GetOverallCode(), "%s %d", name, hits)
		}
		assert.EqualValues(t, total-1, ask(name, 1, false).GetStatuses()[0].GetLimitRemaining())
		for _, hits := range huge {
			left := ask(name, hits, true).GetStatuses()[0].GetLimitRemaining()
			assert.EqualValues(t, total, left, "%s -%d", name, hits)
		}
	}
	require.NoError(t, redis.Stop())
	for _, hits := range huge {
		assert.Equal(t, denied, ask("window=big", hits, false).GetOverallCode(), hits)
		assert.Equal(t, allowed, ask("open=big", hits, false).GetOverallCode(), hits)
	}
}

// TestEnvoy_LongHeadersAvoidNoLimit has the longest headers that Envoy takes by default, 60 KiB, in
// two descriptors.
func TestEnvoy_LongHeadersAvoidNoLimit(t *testing.T) {
	s := start(t, servers.Redis(t))
	long := strings.Repeat("x", 60<<10)
	for range 3 {
		require.Equal(t, allowed,
			s.decide(t, descriptor("window="+long), descriptor("client="+long)).GetOverallCode())
	}
	require.Equal(t, denied,
		s.decide(t, descriptor("window="+long), descriptor("client="+long)).GetOverallCode())
}

func TestEnvoy_WithoutRedisTheRuleDecides(t *testing.T) {
	redis := servers.Redis(t)
	s := start(t, redis)
	require.NoError(t, redis.Stop())
	reads := descriptor("closed=x")
	reads.HitsAddend = wrapperspb.UInt64(0)
	for _, closed := range []*descriptorv3.RateLimitDescriptor{descriptor("closed=x"), reads} {
		_, err := s.envoy.ShouldRateLimit(t.Context(), &ratelimitv3.RateLimitRequest{
			Domain:      "edge",
			Descriptors: []*descriptorv3.RateLimitDescriptor{descriptor("node=x"), closed},
		})
		assert.Equal(t, codes.Unavailable, status.Code(err))
	}
	node := s.decide(t, descriptor("node=x")).GetStatuses()[0]
	assert.EqualValues(t, 3, node.GetLimitRemaining(), "a request that fails takes nothing")
	for range 3 {
		r := s.decide(t, descriptor("open=x"))
		assert.Equal(t, allowed, r.GetOverallCode())
		assert.Equal(t, map[string]string{"RateLimit-Policy": `"open";q=1;w=86400`}, headers(r))
	}
	assert.NotContains(t, s.acquire(t, `{"rule": "open", "key": "x"}`).Header, "Ratelimit")
	for range 3 {
		assert.Equal(t, allowed, s.decide(t, descriptor("window=x")).GetOverallCode())
	}
	assert.Equal(t, denied, s.decide(t, descriptor("window=x")).GetOverallCode())
	assert.Equal(t, codeList(denied, denied, allowed),
		codesOf(s.decide(t, descriptor("window=x"), descriptor("closed=x"))), "a denial stays one")
	read := descriptor("open=x")
	read.HitsAddend = wrapperspb.UInt64(0)
	assert.Equal(t, allowed, s.decide(t, read).GetOverallCode())
	share := descriptor("window=x")
	share.HitsAddend = wrapperspb.UInt64(0)
	assert.Equal(t, denied, s.decide(t, share).GetOverallCode(), "the node's share is used up")
	closed := s.acquire(t, `{"rule": "closed", "key": "x"}`)
	assert.Equal(t, 503, closed.Status)
	assert.Equal(t, "UNAVAILABLE", closed.Reason)
	assert.Equal(t, "1", closed.Header.Get("Retry-After"))
	s.wrote(t, "rule closed: redis did not decide in time")
	assert.Equal(t, 503, s.do(t, "GET", "/v1/limiters/window/x", "").Status)
	assert.Equal(t, 200, s.do(t, "GET", "/readyz", "").Status)
}

// TestEnvoy_DeniedRequestHasEachStatus checks that a denied request says what each of its
// descriptors has, and takes nothing from any of them.
func TestEnvoy_DeniedRequestHasEachStatus(t *testing.T) {
	s := start(t, servers.Redis(t))
	for range 3 {
		require.Equal(t, allowed,
			s.decide(t, descriptor("window=d"), descriptor("window=e")).GetOverallCode())
	}
	require.Equal(t, allowed, s.decide(t, descriptor("shadow=d")).GetOverallCode())
	hits := func(n uint64) *descriptorv3.RateLimitDescriptor {
		d := descriptor("client=d")
		d.HitsAddend = wrapperspb.UInt64(n)
		return d
	}
	for range 2 {
		r := s.decide(t, descriptor("window=d"), descriptor("client=d"), descriptor("window=e"),
			hits(5), hits(6), descriptor("shadow=d"))
		require.Equal(t, codeList(denied, denied, allowed, denied, allowed, denied, allowed),
			codesOf(r))
		require.Positive(t, r.Statuses[1].LimitRemaining)
		require.NotNil(t, r.Statuses[1].CurrentLimit)
	}
}

func TestGRPC_HasHealthAndReflection(t *testing.T) {
	s := start(t, servers.Redis(t))
	const name = "envoy.service.ratelimit.v3.RateLimitService"
	health := must.Get(healthpb.NewHealthClient(s.conn).Check(t.Context(),
		&healthpb.HealthCheckRequest{Service: name}))(t)
	assert.Equal(t, healthpb.HealthCheckResponse_SERVING, health.GetStatus())
	stream := must.Get(reflectionpb.NewServerReflectionClient(s.conn).
		ServerReflectionInfo(t.Context()))(t)
	require.NoError(t, stream.Send(&reflectionpb.ServerReflectionRequest{
		MessageRequest: &reflectionpb.ServerReflectionRequest_ListServices{},
	}))
	reply := must.Get(stream.Recv())(t)
	var names []string
	for _, service := range reply.GetListServicesResponse().GetService() {
		names = append(names, service.GetName())
	}
	assert.Contains(t, names, name)
	require.NoError(t, stream.CloseSend())
}

// TestRatelimitd_StoppingNodeIsNotReady checks that a node that stops reports it to both kinds of
// probes, and ends as soon as its last call has ended.
func TestRatelimitd_StoppingNodeIsNotReady(t *testing.T) {
	s := start(t, servers.Redis(t))
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	client := healthpb.NewHealthClient(s.conn)
	states := must.Get(client.Watch(ctx, &healthpb.HealthCheckRequest{}))(t)
	next := func() string { return must.Get(states.Recv())(t).GetStatus().String() }
	require.Equal(t, "SERVING", next())
	stopped := make(chan error, 1)
	go func() { stopped <- s.Stop() }()
	require.Equal(t, "NOT_SERVING", next())
	resp := must.Get(http.Get("http://" + s.OpsAddr() + "/readyz"))(t)
	defer resp.Body.Close()
	body := must.Get(io.ReadAll(resp.Body))(t)
	require.Equal(t, http.StatusServiceUnavailable, resp.StatusCode)
	require.Contains(t, string(body), `"node":"draining"`)
	leave()
	require.NoError(t, <-stopped)
}
