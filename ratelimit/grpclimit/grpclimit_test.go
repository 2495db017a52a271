package grpclimit_test

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"flashsale.dev/seckill/internal/testing/must"
	"flashsale.dev/seckill/ratelimit"
	"flashsale.dev/seckill/ratelimit/grpclimit"
)

// serve runs a health service behind the interceptor and returns a client.
func serve(t *testing.T, limit ratelimit.Limit, options grpclimit.Options) healthpb.HealthClient {
	limiter := must.Get(ratelimit.New(ratelimit.Memory(), limit))(t)
	limited := grpclimit.New(limiter, options)
	server := grpc.NewServer(grpc.UnaryInterceptor(limited.Unary),
		grpc.StreamInterceptor(limited.Stream))
	healthpb.RegisterHealthServer(server, health.NewServer())
	listener := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	go func() { _ = server.Serve(listener) }() // ends at Stop
	conn := must.Get(grpc.NewClient(listener.Addr().String(),
		grpc.WithTransportCredentials(insecure.NewCredentials())))(t)
	t.Cleanup(func() {
		_ = conn.Close()
		server.Stop()
		limiter.Close()
	})
	return healthpb.NewHealthClient(conn)
}

func check(t *testing.T, client healthpb.HealthClient) error {
	_, err := client.Check(t.Context(), &healthpb.HealthCheckRequest{}, grpc.WaitForReady(true))
	return err
}

func TestUnary_DeniesWithRetryInfo(t *testing.T) {
	client := serve(t, ratelimit.Limit{Permits: 1, Per: time.Hour},
		grpclimit.Options{KeyFunc: grpclimit.Method})
	require.NoError(t, check(t, client))
	denied := status.Convert(check(t, client))
	assert.Equal(t, codes.ResourceExhausted, denied.Code())
	require.Len(t, denied.Details(), 1)
	info, ok := denied.Details()[0].(*errdetails.RetryInfo)
	require.True(t, ok)
	assert.Positive(t, info.GetRetryDelay().AsDuration())
}

func TestNew_WithoutKeyFuncPanics(t *testing.T) {
	assert.PanicsWithValue(t, "grpclimit: Options.KeyFunc is nil", func() {
		grpclimit.New(nil, grpclimit.Options{})
	})
}

func TestStream_IsLimitedWhenItOpens(t *testing.T) {
	client := serve(t, ratelimit.Limit{Permits: 1, Per: time.Hour},
		grpclimit.Options{KeyFunc: grpclimit.Method})
	open := func() error {
		stream, err := client.Watch(t.Context(), &healthpb.HealthCheckRequest{},
			grpc.WaitForReady(true))
		require.NoError(t, err)
		_, err = stream.Recv()
		return err
	}
	require.NoError(t, open())
	assert.Equal(t, codes.ResourceExhausted, status.Code(open()))
	assert.NoError(t, check(t, client), "another method has its own permits")
}

func TestUnary_OnDeniedReturnsTheError(t *testing.T) {
	client := serve(t, ratelimit.Limit{Permits: 1, Per: time.Hour}, grpclimit.Options{
		KeyFunc: grpclimit.Method,
		OnDenied: func(_ context.Context, method string, _ ratelimit.Decision) error {
			return status.Error(codes.Aborted, method)
		},
	})
	require.NoError(t, check(t, client))
	denied := status.Convert(check(t, client))
	assert.Equal(t, codes.Aborted, denied.Code())
	assert.Equal(t, healthpb.Health_Check_FullMethodName, denied.Message())
}

func TestUnary_WaitsForPermits(t *testing.T) {
	client := serve(t, ratelimit.Limit{Permits: 1000, Per: time.Second, Burst: 1},
		grpclimit.Options{KeyFunc: grpclimit.Method, Wait: true})
	for range 10 {
		require.NoError(t, check(t, client))
	}
}
