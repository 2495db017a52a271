package benchratelimit

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	descriptorv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	redisrate "github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"
	"github.com/sethvargo/go-limiter/memorystore"
	"github.com/stretchr/testify/require"
	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/goredisstore.v9"
	"github.com/throttled/throttled/v2/store/memstore"
	"golang.org/x/time/rate"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"flashsale.dev/seckill/internal/limitservice"
	"flashsale.dev/seckill/internal/ratelimit/gate"
	redislimit "flashsale.dev/seckill/internal/ratelimit/redis"
	"flashsale.dev/seckill/internal/ratelimit/rules"
	"flashsale.dev/seckill/internal/testing/must"
	"flashsale.dev/seckill/internal/testing/servers"
	"flashsale.dev/seckill/ratelimit"

	core "flashsale.dev/seckill/internal/ratelimit"
)

// The limit of every limiter: 1,000 permits a second, and 1,000 at once. The callers ask without a
// pause.
const (
	perSecond = 1000
	burst     = 1000
	callers   = 32
	length    = 2 * time.Second
	patience  = 10 * time.Second
)

// peer is a limiter under test. allow reports whether a request is admitted.
type peer struct {
	name  string
	allow func(context.Context) (bool, error)
	// commands counts those of a program that has its own connections to Redis; else nil.
	commands func() int64
}

// calls counts the commands that a client sends, except those of its connections.
type calls struct{ n atomic.Int64 }

func (c *calls) DialHook(next redis.DialHook) redis.DialHook { return next }

func (c *calls) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		c.n.Add(1)
		return next(ctx, cmd)
	}
}

func (c *calls) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		c.n.Add(1)
		return next(ctx, cmds)
	}
}

// processorTime is what Redis has used since its start.
func processorTime(t *testing.T, client *redis.Client) (used time.Duration) {
	info := must.Get(client.Info(context.Background(), "cpu").Result())(t)
	for line := range strings.Lines(info) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		if name == "used_cpu_user" || name == "used_cpu_sys" {
			seconds := must.Get(strconv.ParseFloat(value, 64))(t)
			used += time.Duration(seconds * float64(time.Second))
		}
	}
	return used
}

// measured is what a peer did in a run.
type measured struct {
	decisions, failed int
	took, slow        time.Duration // slow: the 99th percentile
	admitted          []admission
}

// admission is a request that was admitted between two moments, since the start of the run.
type admission struct{ from, to time.Duration }

// beyond is by how many permits the worst window exceeds burst + rate × T. A permit counts in a
// window if its whole request lies in it, so the limiter has admitted so many at least.
func beyond(all []admission) float64 {
	slices.SortFunc(all, func(x, y admission) int { return cmp.Compare(x.to, y.to) })
	worst := -float64(burst)
	for _, first := range all {
		n := 0
		for _, a := range all {
			if a.from >= first.from {
				n++
				worst = max(worst, float64(n)-burst-perSecond*(a.to-first.from).Seconds())
			}
		}
	}
	return worst
}

// run has all callers ask for the length of a run.
func run(t *testing.T, p peer) (m measured) {
	var mu sync.Mutex
	var all sync.WaitGroup
	var took []time.Duration
	ctx := context.Background()
	began := time.Now()
	for range callers {
		all.Go(func() {
			decisions, failed, mine := 0, 0, []time.Duration{}
			var admitted []admission
			for at := time.Now(); at.Sub(began) < length; decisions++ {
				ok, err := p.allow(ctx)
				switch {
				// throttled ends with an error when many callers write the same key
				case err != nil:
					failed++
				case ok:
					admitted = append(admitted, admission{at.Sub(began), time.Since(began)})
				}
				now := time.Now()
				if decisions%8 == 0 { // a sample, so that the memory stays small
					mine = append(mine, now.Sub(at))
				}
				at = now
			}
			mu.Lock()
			defer mu.Unlock()
			m.decisions += decisions
			m.admitted = append(m.admitted, admitted...)
			m.failed += failed
			took = append(took, mine...)
		})
	}
	all.Wait()
	m.took = time.Since(began)
	slices.Sort(took)
	m.slow = took[len(took)*99/100]
	return m
}

// TestTable prints the table of docs/explanation/rate-limiting.md.
func TestTable(t *testing.T) {
	count := &calls{}
	client := redis.NewClient(&redis.Options{
		Addr: servers.Redis(t).Addr(), PoolSize: callers,
		ContextTimeoutEnabled: true, MaxRetries: -1,
	})
	t.Cleanup(func() { _ = client.Close() })
	client.AddHook(count)
	fmt.Fprintf(os.Stdout, "%s, %d processors, %s\n\n", time.Now().UTC().Format(time.DateOnly),
		runtime.NumCPU(), runtime.Version())
	fmt.Fprintln(os.Stdout, "| limiter | decisions/s | 99th percentile | Redis calls per decision | "+
		"Redis' processor time per decision | admitted of burst + rate × T | beyond it in the worst window | errors |\n"+
		"|---|---|---|---|---|---|---|---|")
	for _, p := range slices.Concat(own(t, client), others(t, client)) {
		_, err := p.allow(context.Background()) // connects
		require.NoError(t, err, p.name)
		time.Sleep(2 * time.Second) // every bucket is full
		used := processorTime(t, client)
		count.n.Store(0)
		if p.commands != nil {
			count.n.Store(-p.commands())
		}
		m := run(t, p)
		if p.commands != nil {
			count.n.Add(p.commands())
		}
		calls := count.n.Load()
		used = processorTime(t, client) - used
		most := burst + perSecond*m.took.Seconds()
		fmt.Fprintf(os.Stdout, "| %s | %.0f | %s | %.5f | %s | %.1f %% | %.0f | %d |\n", p.name,
			float64(m.decisions)/m.took.Seconds(), m.slow.Round(time.Microsecond/10),
			float64(calls)/float64(m.decisions),
			(used / time.Duration(m.decisions)).Round(10*time.Nanosecond),
			100*float64(len(m.admitted))/most,
			max(0, beyond(m.admitted)), m.failed)
	}
}

// own are this project's limiters.
func own(t *testing.T, client *redis.Client) []peer {
	limit := ratelimit.Limit{Permits: perSecond, Per: time.Second, Burst: burst}
	facade := func(name string, store ratelimit.Store, options ...ratelimit.Option) peer {
		options = append(options, ratelimit.Prefix(name+":"), ratelimit.Timeout(patience))
		l := must.Get(ratelimit.New(store, limit, options...))(t)
		t.Cleanup(l.Close)
		return peer{name: name, allow: func(ctx context.Context) (bool, error) {
			d, err := l.Allow(ctx, "k", 1)
			return d.Allowed, err
		}}
	}
	direct := redislimit.New(client, nil)
	ask := core.Request{Key: "direct", N: 1, Params: must.Get(core.Limit{
		Algorithm: core.TokenBucket, PermitsPerSecond: perSecond, Burst: burst,
	}.Params())(t)}
	return []peer{
		facade("ours, memory", ratelimit.Memory()),
		{name: "ours, a call per decision", allow: func(ctx context.Context) (bool, error) {
			d, err := direct.TakeEach(ctx, ask)
			return err == nil && d[0].Allowed, err
		}},
		facade("ours, Redis", ratelimit.Redis(client)),
		facade("ours, Redis, leases of 10", ratelimit.Redis(client), ratelimit.Leases(10)),
		service(t, client),
	}
}

// service is ratelimitd's limiter behind Envoy's protocol, with a client over TCP.
func service(t *testing.T, client *redis.Client) peer {
	book := must.Get(rules.New(must.Get(rules.Parse([]byte(`rules:
  - {name: rls, descriptor: [user], algorithm: token_bucket, permitsPerSecond: 1000, burst: 1000}
`)))(t)...))(t)
	g := gate.New(book, redislimit.New(client, nil), gate.Options{Deadline: patience})
	listener := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	server := grpc.NewServer()
	ratelimitv3.RegisterRateLimitServiceServer(server, limitservice.NewEnvoy(book, g))
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(listener) })
	t.Cleanup(func() {
		server.Stop()
		serving.Wait()
		g.Close()
	})
	return peer{name: "ours, RLS over gRPC", allow: askByGRPC(t, listener.Addr().String())}
}

// askByGRPC asks a rate limit service by Envoy's protocol.
func askByGRPC(t *testing.T, addr string) func(context.Context) (bool, error) {
	conn := must.Get(grpc.NewClient(addr,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.WaitForReady(true))))(t)
	t.Cleanup(func() { _ = conn.Close() })
	rls := ratelimitv3.NewRateLimitServiceClient(conn)
	request := &ratelimitv3.RateLimitRequest{
		Domain: "edge", Descriptors: []*descriptorv3.RateLimitDescriptor{{
			Entries: []*descriptorv3.RateLimitDescriptor_Entry{{Key: "user", Value: "k"}},
		}},
	}
	return func(ctx context.Context) (bool, error) {
		answer, err := rls.ShouldRateLimit(ctx, request)
		return answer.GetOverallCode() == ratelimitv3.RateLimitResponse_OK, err
	}
}

// others are the limiters of other projects.
func others(t *testing.T, client *redis.Client) []peer {
	bucket, inRedis := rate.NewLimiter(perSecond, burst), redisrate.NewLimiter(client)
	tokens := must.Get(memorystore.New(&memorystore.Config{
		Tokens: perSecond, Interval: time.Second,
	}))(t)
	t.Cleanup(func() { _ = tokens.Close(context.Background()) })
	quota := throttled.RateQuota{MaxRate: throttled.PerSec(perSecond), MaxBurst: burst - 1}
	gcra := func(name string, store throttled.GCRAStoreCtx) peer {
		l := must.Get(throttled.NewGCRARateLimiterCtx(store, quota))(t)
		return peer{name: name, allow: func(ctx context.Context) (bool, error) {
			limited, _, err := l.RateLimitCtx(ctx, "throttled", 1)
			return !limited, err
		}}
	}
	return []peer{
		{name: "x/time/rate", allow: func(context.Context) (bool, error) {
			return bucket.Allow(), nil
		}},
		{name: "sethvargo/go-limiter, memory", allow: func(ctx context.Context) (bool, error) {
			_, _, _, ok, err := tokens.Take(ctx, "k")
			return ok, err
		}},
		gcra("throttled, memory", must.Get(memstore.NewCtx(1000))(t)),
		gcra("throttled, Redis", must.Get(goredisstore.NewCtx(client, "t:"))(t)),
		envoyRatelimit(t, client),
		{name: "redis_rate", allow: func(ctx context.Context) (bool, error) {
			r, err := inRedis.Allow(ctx, "redis_rate", redisrate.PerSecond(perSecond))
			return err == nil && r.Allowed > 0, err
		}},
	}
}
