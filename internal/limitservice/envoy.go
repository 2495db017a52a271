package limitservice

import (
	"context"
	"math"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	descriptorv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"flashsale.dev/seckill/internal/ratelimit"
	"flashsale.dev/seckill/internal/ratelimit/gate"
	"flashsale.dev/seckill/internal/ratelimit/rules"
)

// Envoy is Envoy's rate limit service v3.
//
// A rule with a field descriptor decides each descriptor that it matches. A descriptor without a
// rule is OK. No call waits for permits. A request with a denied descriptor keeps no permits; those
// that its negative hits return stay returned.
type Envoy struct {
	ratelimitv3.UnimplementedRateLimitServiceServer
	book *rules.Rulebook
	gate *gate.Gate
}

// NewEnvoy makes the service.
func NewEnvoy(book *rules.Rulebook, gate *gate.Gate) *Envoy {
	return &Envoy{book: book, gate: gate}
}

// maxDescriptors bounds the work of one call.
const maxDescriptors = 64

// ShouldRateLimit decides the descriptors of a request. Errors are InvalidArgument, Unavailable if
// Redis does not decide a rule with onError: closed, and those of ctx. After an error it keeps no
// permits.
func (e *Envoy) ShouldRateLimit(
	ctx context.Context, req *ratelimitv3.RateLimitRequest,
) (*ratelimitv3.RateLimitResponse, error) {
	asks, err := e.asks(req)
	if err != nil {
		return nil, err
	}
	d := decisions{gate: e.gate, response: &ratelimitv3.RateLimitResponse{
		OverallCode: ratelimitv3.RateLimitResponse_OK,
	}}
	for _, a := range asks {
		if err := d.add(ctx, a); err != nil {
			d.refund()
			return nil, err
		}
	}
	if d.denied() {
		d.refund()
	}
	d.addHeaders()
	return d.response, nil
}

// ask is a descriptor with its rule. rule is nil if none matches.
type ask struct {
	rule    *rules.Compiled
	request ratelimit.Request
	hits    int64
}

// asks finds the rules of all descriptors, before the first descriptor takes permits.
func (e *Envoy) asks(req *ratelimitv3.RateLimitRequest) ([]ask, error) {
	n := len(req.GetDescriptors())
	switch {
	case req.GetDomain() == "":
		return nil, status.Error(codes.InvalidArgument, "domain must not be empty")
	case n == 0 || n > maxDescriptors:
		return nil, status.Errorf(codes.InvalidArgument, "descriptors must be 1 to %d",
			maxDescriptors)
	}
	all := make([]ask, n)
	for i, descriptor := range req.GetDescriptors() {
		a, err := e.ask(req, descriptor)
		if err != nil {
			return nil, status.Errorf(codes.InvalidArgument, "descriptors[%d]: %v", i, err)
		}
		all[i] = a
	}
	return all, nil
}

func (e *Envoy) ask(
	req *ratelimitv3.RateLimitRequest, descriptor *descriptorv3.RateLimitDescriptor,
) (a ask, err error) {
	a.hits = hitsOf(req, descriptor)
	entries := make([]rules.Entry, len(descriptor.GetEntries()))
	for i, entry := range descriptor.GetEntries() {
		entries[i] = rules.Entry{Key: entry.GetKey(), Value: entry.GetValue()}
	}
	if len(entries) == 0 {
		return ask{}, ratelimit.BadField("entries", "must not be empty")
	}
	rule, key, found := e.book.ForDescriptor(req.GetDomain(), entries)
	if !found {
		return ask{}, nil
	}
	own, err := override(rule, descriptor.GetLimit())
	if err != nil {
		return ask{}, err
	}
	a.rule = rule
	rule.Request(&a.request, key, e.book.Params(rule, key, own))
	a.request.MaxWait = 0 // Envoy does not wait
	return a, nil
}

// hitsOf returns how many permits a descriptor asks for; 0 reads the limiter, and a negative number
// returns permits. The descriptor's own number goes before the request's, whose 0 means 1. No
// limiter grants MaxTicks, so a higher number makes no difference.
func hitsOf(
	req *ratelimitv3.RateLimitRequest, descriptor *descriptorv3.RateLimitDescriptor,
) int64 {
	hits := uint64(max(1, req.GetHitsAddend()))
	if own := descriptor.GetHitsAddend(); own != nil {
		hits = own.GetValue()
	}
	n := int64(min(hits, uint64(ratelimit.MaxTicks)))
	if descriptor.GetIsNegativeHits() {
		return -n
	}
	return n
}

// decisions collects the decisions on a request's descriptors, and their response.
type decisions struct {
	gate     *gate.Gate
	response *ratelimitv3.RateLimitResponse
	results  []gate.Result
}

// add decides a descriptor. After a denial it takes nothing more.
func (d *decisions) add(ctx context.Context, a ask) error {
	answer := &ratelimitv3.RateLimitResponse_DescriptorStatus{Code: ratelimitv3.RateLimitResponse_OK}
	d.response.Statuses = append(d.response.Statuses, answer)
	if a.rule == nil {
		return nil
	}
	result, err := d.decide(ctx, a)
	switch {
	case ctx.Err() != nil:
		return status.FromContextError(ctx.Err()).Err()
	case err != nil || result.Unavailable:
		return status.Errorf(codes.Unavailable, "rule %s: redis did not decide in time",
			a.rule.Name)
	}
	if !result.Allowed {
		answer.Code = ratelimitv3.RateLimitResponse_OVER_LIMIT
		d.response.OverallCode = answer.Code
		d.response.RawBody = append(d.response.RawBody, a.rule.Message...)
	}
	answer.CurrentLimit = currentLimit(a.rule.Name, a.request.Params.Limit())
	answer.LimitRemaining = uint32(min(result.Remaining, math.MaxUint32))
	answer.DurationUntilReset = durationpb.New(max(result.ResetAfter, result.RetryAfter))
	return nil
}

func (d *decisions) decide(ctx context.Context, a ask) (gate.Result, error) {
	if a.hits <= 0 || d.denied() {
		return d.read(ctx, a)
	}
	a.request.N = a.hits
	result, err := d.gate.Take(ctx, a.rule, a.request)
	if err == nil {
		d.results = append(d.results, result)
	}
	return result, err
}

// read reads the limiter, after it has returned permits if hits is negative. A limiter that cannot
// be read is an error if its rule has onError: closed; otherwise it denies nothing. After a denial
// it is no error either, because Envoy may admit a request that got an error.
func (d *decisions) read(ctx context.Context, a ask) (gate.Result, error) {
	var now ratelimit.Decision
	var err error
	if a.hits < 0 {
		a.request.N = -a.hits
		now, err = d.gate.Credit(ctx, a.rule, a.request)
	} else {
		now, err = d.gate.Peek(ctx, a.rule, a.request)
	}
	if err != nil && (d.denied() || a.rule.OnError != rules.OnErrorClosed) {
		return gate.Result{Decision: ratelimit.Decision{Allowed: true}, Degraded: true}, nil
	}
	now.Allowed = a.hits < 0 || a.rule.DryRun ||
		now.Allowed && (a.hits <= 1 || now.Remaining >= a.hits)
	return gate.Result{Decision: now}, err
}

func (d *decisions) denied() bool {
	return d.response.GetOverallCode() == ratelimitv3.RateLimitResponse_OVER_LIMIT
}

// refund returns the permits of the admitted descriptors.
func (d *decisions) refund() {
	for i := range d.results {
		d.results[i].Refund()
	}
}

// addHeaders adds the headers that the API also sends: RateLimit and RateLimit-Policy, and
// Retry-After of the denied descriptor.
func (d *decisions) addHeaders() {
	var limit, policy []byte
	for i := range d.results {
		limit, policy = d.results[i].AppendHeaders(limit, policy)
	}
	if len(policy) == 0 {
		return
	}
	if len(limit) > 0 {
		d.addHeader("RateLimit", string(limit))
	}
	d.addHeader("RateLimit-Policy", string(policy))
	if last := d.results[len(d.results)-1]; !last.Allowed && !last.Never {
		d.addHeader("Retry-After", gate.RetryAfter(last.RetryAfter))
	}
}

func (d *decisions) addHeader(key, value string) {
	d.response.ResponseHeadersToAdd = append(d.response.ResponseHeadersToAdd,
		&corev3.HeaderValue{Key: key, Value: value})
}
