package limitservice_test

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	descriptorv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"flashsale.dev/seckill/internal/testing/installation"
	"flashsale.dev/seckill/internal/testing/must"
	"flashsale.dev/seckill/internal/testing/servers"
)

func TestMain(m *testing.M) {
	code := m.Run()
	installation.Clean()
	os.Exit(code)
}

// The limits are of a day, so that no machine is slow enough for a permit to accumulate.
const serviceRules = `
rules:
  - {name: client, descriptor: [client], algorithm: token_bucket, limit: 1, interval: 24h, burst: 5}
  - {name: path, descriptor: [client, path], algorithm: token_bucket, limit: 1, interval: 24h, burst: 5}
  - {name: login, descriptor: [client, path=/login], algorithm: token_bucket, limit: 1, interval: 24h,
     burst: 2, message: too many attempts}
  - {name: partner, domain: edge, descriptor: [client=partner], algorithm: token_bucket, limit: 1,
     interval: 24h, burst: 9}
  - {name: node, descriptor: [node], scope: node, algorithm: token_bucket, limit: 1, interval: 24h, burst: 4}
  - {name: window, descriptor: [window], algorithm: fixed_window, limit: 3, interval: 24h}
  - {name: shadow, descriptor: [shadow], algorithm: fixed_window, limit: 1, interval: 24h, dryRun: true}
  - {name: closed, descriptor: [closed], algorithm: fixed_window, limit: 1, interval: 24h, onError: closed}
  - {name: open, descriptor: [open], algorithm: fixed_window, limit: 1, interval: 24h, onError: open}
  - {name: waiting, permitsPerSecond: 1000, burst: 1, maxWaitMillis: 60000}
  - {name: slow, descriptor: [slow], permitsPerSecond: 0.04, burst: 1, maxWaitMillis: 60000}
`

// service is a ratelimitd, with a client of each protocol.
type service struct {
	*installation.Program
	conn  *grpc.ClientConn
	envoy ratelimitv3.RateLimitServiceClient
}

// grpcAddr finds the address of gRPC, whose port the system chose, in the log.
var grpcAddr = regexp.MustCompile(`"grpc":"([^"]+)"`)

// start starts a ratelimitd on a Redis.
func start(t *testing.T, redis *servers.RedisServer) *service {
	file := filepath.Join(t.TempDir(), "rules.yaml")
	require.NoError(t, os.WriteFile(file, []byte(serviceRules), 0o600))
	p := installation.StartProgram(t, "ratelimitd", "SECKILL_HTTP_ADDR", []string{
		"SECKILL_REDIS_ADDRS=" + redis.Addr(), "SECKILL_RATELIMIT_FILE=" + file,
		"SECKILL_GRPC_ADDR=127.0.0.1:0", "SECKILL_RATELIMIT_TIMEOUT=1m", // for busy machines
	})
	addr := grpcAddr.FindStringSubmatch(p.Log())
	require.NotNil(t, addr, "%s", p.Log())
	conn := must.Get(grpc.NewClient(addr[1],
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.WaitForReady(true))))(t)
	t.Cleanup(func() { _ = conn.Close() })
	return &service{p, conn, ratelimitv3.NewRateLimitServiceClient(conn)}
}

// wrote waits until the log has a text, because it arrives through a pipe.
func (s *service) wrote(t *testing.T, text string) {
	require.Eventually(t, func() bool { return s.CountLogLines(text) > 0 }, time.Minute,
		10*time.Millisecond)
}

// descriptor makes a descriptor of "key=value" entries.
func descriptor(entries ...string) *descriptorv3.RateLimitDescriptor {
	d := &descriptorv3.RateLimitDescriptor{}
	for _, entry := range entries {
		key, value, _ := strings.Cut(entry, "=")
		d.Entries = append(d.Entries,
			&descriptorv3.RateLimitDescriptor_Entry{Key: key, Value: value})
	}
	return d
}

// decide asks for a request with one hit for each descriptor.
func (s *service) decide(
	t *testing.T, descriptors ...*descriptorv3.RateLimitDescriptor,
) *ratelimitv3.RateLimitResponse {
	return must.Get(s.envoy.ShouldRateLimit(t.Context(), &ratelimitv3.RateLimitRequest{
		Domain: "edge", Descriptors: descriptors,
	}))(t)
}

// answer is an answer over HTTP.
type answer struct {
	Status  int
	Header  http.Header
	Code    int            `json:"code"`
	Reason  string         `json:"reason"`
	Message string         `json:"message"`
	Data    map[string]any `json:"data"`
}

// do makes a call over HTTP. The path is sent as it is.
func (s *service) do(t *testing.T, method, path, body string) answer {
	req := must.Get(http.NewRequestWithContext(t.Context(), method, "http://"+s.Addr+path,
		bytes.NewBufferString(body)))(t)
	resp := must.Get(http.DefaultTransport.RoundTrip(req))(t) // it follows no redirect
	defer resp.Body.Close()
	text := must.Get(io.ReadAll(resp.Body))(t)
	a := answer{Status: resp.StatusCode, Header: resp.Header}
	require.NoError(t, json.Unmarshal(text, &a), "%s %s: %d %s", method, path, a.Status, text)
	return a
}

// change makes an idempotent call to a limiter, again while a busy Redis does not answer in time.
func (s *service) change(t *testing.T, method, path, body string) (a answer) {
	began := time.Now()
	for a = s.do(t, method, path, body); a.Status == http.StatusServiceUnavailable; {
		require.Less(t, time.Since(began), time.Minute, "%v", a)
		a = s.do(t, method, path, body)
	}
	return a
}

func (s *service) acquire(t *testing.T, body string) answer {
	return s.do(t, http.MethodPost, "/v1/acquire", body)
}
