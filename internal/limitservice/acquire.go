package limitservice

import (
	"errors"
	"net/http"
	"time"

	"flashsale.dev/seckill/internal/ratelimit"
	"flashsale.dev/seckill/internal/ratelimit/gate"
	"flashsale.dev/seckill/internal/ratelimit/rules"
)

// acquireRequest is the body of POST /v1/acquire.
type acquireRequest struct {
	Rule          string `json:"rule"`
	Key           string `json:"key"`
	Permits       *int64 `json:"permits"`
	MaxWaitMillis int64  `json:"maxWaitMillis"`
}

// acquireAnswer is the data of the answer to it.
type acquireAnswer struct {
	Granted      int64 `json:"granted"`
	WaitedMillis int64 `json:"waitedMillis"`
	Remaining    int64 `json:"remaining"`
	ResetMillis  int64 `json:"resetMillis"`
}

// acquire takes permits of a rule and a key, and answers once they are good. If the client leaves
// before, the permits are returned.
func (s *HTTP) acquire(w http.ResponseWriter, r *http.Request) (any, error) {
	var body acquireRequest
	if err := read(r, &body); err != nil {
		return nil, err
	}
	rule, request, err := s.requestOf(body)
	if err != nil {
		return nil, err
	}
	result, err := s.gate.Take(r.Context(), rule, request)
	if err != nil {
		return nil, err
	}
	// After the decision, which may take some time where SECKILL_RATELIMIT_TIMEOUT is long.
	until := time.Now().Add(result.Decision.Wait + writeGrace)
	if err := http.NewResponseController(w).SetWriteDeadline(until); err != nil {
		return nil, err
	}
	err = result.Wait(r.Context())
	setHeaders(w.Header(), &result)
	switch {
	case errors.Is(err, gate.ErrLimited):
		return nil, &deniedError{result}
	case err != nil:
		return nil, err
	}
	return acquireAnswer{
		Granted: result.Granted, WaitedMillis: result.Decision.Wait.Milliseconds(),
		Remaining: result.Remaining, ResetMillis: ceilMillis(result.ResetAfter),
	}, nil
}

// requestOf checks the body of an acquire, and returns its rule and the request for permits.
func (s *HTTP) requestOf(body acquireRequest) (*rules.Compiled, ratelimit.Request, error) {
	if body.Rule == "" {
		return nil, ratelimit.Request{}, ratelimit.BadField("rule", "is required")
	}
	rule, err := s.book.Find(body.Rule)
	if err != nil {
		return nil, ratelimit.Request{}, err
	}
	permits := int64(1)
	if body.Permits != nil {
		permits = *body.Permits
	}
	switch {
	case body.Key == rules.AnyKey:
		err = ratelimit.BadField("key", "* stands for all keys")
	case permits < 1 || permits > maxPermits:
		err = ratelimit.BadField("permits", "must be 1 to %d", maxPermits)
	case body.MaxWaitMillis < 0 || body.MaxWaitMillis > maxWaitMillis:
		err = ratelimit.BadField("maxWaitMillis", "must be 0 to %d", maxWaitMillis)
	default:
		err = rules.CheckKey(body.Key)
	}
	if err != nil {
		return nil, ratelimit.Request{}, err
	}
	var request ratelimit.Request
	rule.Request(&request, body.Key, s.book.Params(rule, body.Key, nil))
	request.N, request.MaxWait = permits, time.Duration(body.MaxWaitMillis)*time.Millisecond
	return rule, request, nil
}

// setHeaders sets RateLimit-Policy, and RateLimit unless the result has no value for it.
func setHeaders(header http.Header, result *gate.Result) {
	limit, policy := result.AppendHeaders(nil, nil)
	if len(limit) > 0 {
		header.Set("RateLimit", string(limit))
	}
	header.Set("RateLimit-Policy", string(policy))
}
