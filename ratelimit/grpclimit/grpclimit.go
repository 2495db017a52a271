// Package grpclimit limits the calls of a gRPC server by a ratelimit.Limiter.
//
//	limited := grpclimit.New(limiter, grpclimit.Options{KeyFunc: grpclimit.Method})
//	grpc.NewServer(grpc.UnaryInterceptor(limited.Unary), grpc.StreamInterceptor(limited.Stream))
package grpclimit

import (
	"context"
	"errors"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"flashsale.dev/seckill/ratelimit"
)

// Options are the settings of an Interceptor. Only KeyFunc is required.
type Options struct {
	// KeyFunc returns the key of a call to the method, such as "/package.Service/Method".
	KeyFunc func(ctx context.Context, method string) string
	// OnDenied returns the error of a denied call. By default it is ResourceExhausted, with
	// google.rpc.RetryInfo where a retry can succeed.
	OnDenied func(ctx context.Context, method string, d ratelimit.Decision) error
	// Wait makes calls wait for permits, up to the limit's MaxWait. By default they are denied at
	// once.
	Wait bool
}

// Interceptor takes one permit for each call, and for each stream when it opens.
type Interceptor struct {
	limiter *ratelimit.Limiter
	options Options
}

// New makes an interceptor. It panics without a KeyFunc, because the first call would end the
// program.
func New(limiter *ratelimit.Limiter, options Options) *Interceptor {
	if options.KeyFunc == nil {
		panic("grpclimit: Options.KeyFunc is nil")
	}
	if options.OnDenied == nil {
		options.OnDenied = exhausted
	}
	return &Interceptor{limiter: limiter, options: options}
}

// Method is a KeyFunc: all callers of a method share one limiter.
func Method(_ context.Context, method string) string { return method }

// Unary is a grpc.UnaryServerInterceptor.
func (i *Interceptor) Unary(
	ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler,
) (any, error) {
	if err := i.admit(ctx, info.FullMethod); err != nil {
		return nil, err
	}
	return handler(ctx, req)
}

// Stream is a grpc.StreamServerInterceptor.
func (i *Interceptor) Stream(
	server any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler,
) error {
	if err := i.admit(stream.Context(), info.FullMethod); err != nil {
		return err
	}
	return handler(server, stream)
}

func (i *Interceptor) admit(ctx context.Context, method string) error {
	reserve := i.limiter.ReserveNow
	if i.options.Wait {
		reserve = i.limiter.Reserve
	}
	r, err := reserve(ctx, i.options.KeyFunc(ctx, method), 1)
	if err == nil {
		err = r.Wait(ctx)
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ratelimit.ErrLimited):
		return i.options.OnDenied(ctx, method, r.Decision)
	case ctx.Err() != nil:
		return status.FromContextError(ctx.Err()).Err()
	}
	return status.Error(codes.Unavailable, "the rate limiter does not answer")
}

func exhausted(_ context.Context, _ string, d ratelimit.Decision) error {
	denied := status.New(codes.ResourceExhausted, "too many requests")
	if d.Never {
		return denied.Err()
	}
	detailed, err := denied.WithDetails(
		&errdetails.RetryInfo{RetryDelay: durationpb.New(d.RetryAfter)})
	if err != nil {
		return denied.Err()
	}
	return detailed.Err()
}
