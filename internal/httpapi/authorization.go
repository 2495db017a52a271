package httpapi

import (
	"cmp"
	"context"
	"net/http"
	"strings"

	"flashsale.dev/seckill/internal/apierror"
	"flashsale.dev/seckill/internal/apikey"
	"flashsale.dev/seckill/internal/seckill"
)

// authenticate verifies the caller. It is the only place that checks the caller's role and the
// scope of an API key, which depend on the route alone. The error denied says that one of them is
// missing; permit returns it, after 400 and 404.
func (a *api) authenticate(r *http.Request, rt route) (by seckill.Actor, denied, err error) {
	by, denied, err = a.callerOf(r, rt.scope)
	if err == nil && denied == nil && (rt.callers == nil || !rt.callers(by)) {
		denied = apierror.New(apierror.Forbidden, "your role may not do this")
	}
	return by, denied, err
}

// callerOf verifies the bearer token. It uses the session cookie only without an Authorization
// header. A program that sends a bad token must get an error, even from a browser with a session.
func (a *api) callerOf(
	r *http.Request, scope apikey.Scope,
) (by seckill.Actor, denied, err error) {
	if r.Header["Authorization"] == nil {
		by, err = a.cookieActor(r)
		return by, nil, err
	}
	token, err := bearer(r.Header)
	if err != nil {
		return seckill.Actor{}, nil, err
	}
	if apikey.Is(token) {
		return a.keyActor(r.Context(), token, scope)
	}
	by, err = a.tokenActor(r, token)
	return by, nil, err
}

// tokenActor verifies a token, and keeps its expiry for an event stream.
func (a *api) tokenActor(r *http.Request, token string) (seckill.Actor, error) {
	by, expiry, err := a.Tokens.VerifyWithExpiry(token)
	requestContextOf(r.Context()).tokenExpiry = expiry
	return by, err
}

// keyActor returns the merchant of an API key. Where the key lacks the scope the merchant has no
// role, so that no step of the call allows it anything. Failed attempts are limited by address.
func (a *api) keyActor(
	ctx context.Context, token string, scope apikey.Scope,
) (by seckill.Actor, denied, err error) {
	key, err := a.KeyVerifier.Verify(ctx, token)
	switch {
	case apierror.ReasonOf(err) == apierror.Unauthenticated:
		return by, nil, cmp.Or(a.Limiter.limitFailedKey(ctx), err)
	case err != nil:
		return by, nil, err
	case scope == "":
		denied = apierror.New(apierror.Forbidden,
			"an API key may not do this; sign in with a token")
	case !key.Allows(scope):
		denied = apierror.New(apierror.Forbidden, "the API key lacks the scope %s", scope)
	}
	by = key.Actor()
	if denied != nil {
		by.Role = ""
	}
	return by, denied, nil
}

// bearer returns the token of the Authorization header. It refuses two headers, because a reverse
// proxy might check one of them and this node the other.
func bearer(h http.Header) (string, error) {
	values := h["Authorization"]
	if len(values) == 0 {
		return "", apierror.New(apierror.Unauthenticated, "a bearer token is needed")
	}
	scheme, token, _ := strings.Cut(values[0], " ")
	if len(values) > 1 || !strings.EqualFold(scheme, "Bearer") || token == "" {
		return "", apierror.New(apierror.Unauthenticated,
			"one Authorization header with a bearer token is needed")
	}
	return token, nil
}

// permit refuses with FORBIDDEN unless the caller may use the route and an API key has its scope.
// Then it takes a permit of each rate limit of the call. Each handler calls it after the checks of
// the fields and before any effect; handler panics if one does not.
//
// The contract puts NOT_FOUND before FORBIDDEN, and both and the sale's state before RATE_LIMITED.
// So an error first looks up what the call addresses; lookup is nil for calls that address nothing.
// Permitted requests skip it, because the service reads the thing anyway.
func (r *request) permit(ctx context.Context, lookup func() error) error {
	err := r.denied
	if err == nil && r.takePermits != nil { // a stream's handler runs again for each event
		err = r.takePermits(ctx)
		r.takePermits = nil
	}
	if err == nil || lookup == nil {
		return err
	}
	found := lookup()
	switch apierror.ReasonOf(found) {
	case apierror.NotFound:
		return found
	case "", apierror.Unavailable:
		return err
	default:
		if apierror.ReasonOf(err) == apierror.RateLimited {
			return found
		}
		return err
	}
}

// errorOnly returns the error of a lookup, of which permit does not need the value.
func errorOnly[T any](_ T, err error) error { return err }

// checked returns the first problem of the fields taken so far, else that of permit. It is for
// calls that address nothing.
func (r *request) checked(ctx context.Context) error {
	if err := r.Err(); err != nil {
		return err
	}
	return r.permit(ctx, nil)
}

// callableBy sets the callers of routes.
func callableBy(callers func(seckill.Actor) bool, routes []route) []route {
	for i := range routes {
		routes[i].callers = callers
	}
	return routes
}

func isSeller(a seckill.Actor) bool {
	return a.Role == seckill.Merchant || a.Role == seckill.Operator
}

func isBuyer(a seckill.Actor) bool { return a.Role == seckill.Buyer }

func isOperator(a seckill.Actor) bool { return a.Role == seckill.Operator }
