package httpapi

import (
	"cmp"
	"context"
	"net/http"
	"strings"

	"flashsale.dev/seckill/internal/apikey"
	"flashsale.dev/seckill/internal/seckill"
)

// authenticate verifies the bearer token. It uses the session cookie only without an Authorization
// header. A program that sends a bad token must get an error, even from a browser with a session.
//
// It is also the only place that checks the scope of an API key, which depends on the route alone. A
// key without the scope is refused before anything of the request is read.
func (a *api) authenticate(r *http.Request, scope apikey.Scope) (seckill.Actor, error) {
	if r.Header["Authorization"] == nil {
		return a.cookieActor(r)
	}
	token, err := bearer(r.Header)
	if err != nil {
		return seckill.Actor{}, err
	}
	if apikey.Is(token) {
		return a.keyActor(r.Context(), token, scope)
	}
	return a.Tokens.Verify(token)
}

// keyActor returns the merchant of an API key with the scope. Failed attempts are limited by
// address.
func (a *api) keyActor(
	ctx context.Context, token string, scope apikey.Scope,
) (seckill.Actor, error) {
	key, err := a.KeyVerifier.Verify(ctx, token)
	switch {
	case seckill.ReasonOf(err) == seckill.Unauthenticated:
		return seckill.Actor{}, cmp.Or(a.Limiter.LimitFailedKey(ctx), err)
	case err != nil:
		return seckill.Actor{}, err
	case scope == "":
		return seckill.Actor{}, seckill.NewError(seckill.Forbidden,
			"an API key may not do this; sign in with a token")
	case !key.Allows(scope):
		return seckill.Actor{}, seckill.NewError(seckill.Forbidden,
			"the API key lacks the scope %s", scope)
	}
	return key.Actor(), nil
}

// bearer returns the token of the Authorization header. It refuses two headers, because a reverse
// proxy might check one of them and this node the other.
func bearer(h http.Header) (string, error) {
	values := h["Authorization"]
	if len(values) == 0 {
		return "", seckill.NewError(seckill.Unauthenticated, "a bearer token is needed")
	}
	scheme, token, _ := strings.Cut(values[0], " ")
	if len(values) > 1 || !strings.EqualFold(scheme, "Bearer") || token == "" {
		return "", seckill.NewError(seckill.Unauthenticated,
			"one Authorization header with a bearer token is needed")
	}
	return token, nil
}

// requireRole refuses with FORBIDDEN unless the role is allowed. The contract puts NOT_FOUND before
// FORBIDDEN, so lookup first checks that the addressed thing exists; it is nil for calls that
// address nothing. Allowed requests skip it, because the service reads it anyway.
func requireRole(allowed bool, lookup func() error) error {
	if allowed {
		return nil
	}
	if lookup != nil {
		if err := lookup(); seckill.ReasonOf(err) == seckill.NotFound {
			return err
		}
	}
	return seckill.NewError(seckill.Forbidden, "your role may not do this")
}

// checked returns the first problem of the fields taken so far, else FORBIDDEN unless the role is
// allowed. The contract puts 400 before 403. It is for calls that address nothing.
func (r *request) checked(allowed bool) error {
	if err := r.Err(); err != nil {
		return err
	}
	return requireRole(allowed, nil)
}

func isSeller(a seckill.Actor) bool {
	return a.Role == seckill.Merchant || a.Role == seckill.Operator
}

func isBuyer(a seckill.Actor) bool { return a.Role == seckill.Buyer }

func isOperator(a seckill.Actor) bool { return a.Role == seckill.Operator }
