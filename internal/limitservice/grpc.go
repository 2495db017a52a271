package limitservice

import (
	"context"
	"fmt"
	"net"
	"time"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"
)

// GRPC serves Envoy's rate limit service, with gRPC's health service and reflection.
type GRPC struct {
	server   *grpc.Server
	health   *health.Server
	listener net.Listener
	timeout  time.Duration
}

// NewGRPC makes a server. It takes messages of 4 MiB, gRPC's default: one that holds a long header
// in several descriptors is no error, on which Envoy may admit the request. When the server stops,
// calls have four fifths of the timeout to end. Run then cuts them off, because a stream of the
// health service never ends by itself.
func NewGRPC(envoy *Envoy, listener net.Listener, timeout time.Duration) *GRPC {
	s := &GRPC{
		server: grpc.NewServer(), health: health.NewServer(),
		listener: listener, timeout: timeout,
	}
	ratelimitv3.RegisterRateLimitServiceServer(s.server, envoy)
	healthpb.RegisterHealthServer(s.server, s.health)
	reflection.Register(s.server)
	s.health.SetServingStatus(ratelimitv3.RateLimitService_ServiceDesc.ServiceName,
		healthpb.HealthCheckResponse_SERVING)
	return s
}

// Drain makes the health service report that this node is stopping.
func (s *GRPC) Drain() { s.health.Shutdown() }

// Run serves until ctx ends, and then finishes the calls in flight.
func (s *GRPC) Run(ctx context.Context) error {
	ended := make(chan error, 1)
	go func() { ended <- s.server.Serve(s.listener) }()
	select {
	case err := <-ended:
		return fmt.Errorf("serve grpc on %s: %w", s.listener.Addr(), err)
	case <-ctx.Done():
	}
	late := time.AfterFunc(s.timeout/5*4, s.server.Stop)
	defer late.Stop()
	s.server.GracefulStop()
	return <-ended
}
