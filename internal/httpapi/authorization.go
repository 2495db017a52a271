package httpapi

import (
	"net/http"
	"strings"

	"flashsale.dev/seckill/internal/seckill"
)

// authenticate verifies the bearer token. It uses the session cookie only without an Authorization
// header. A program that sends a bad token must get an error, even from a browser with a session.
func (a *api) authenticate(r *http.Request) (seckill.Actor, error) {
	if r.Header["Authorization"] == nil {
		return a.cookieActor(r)
	}
	token, err := bearer(r.Header)
	if err != nil {
		return seckill.Actor{}, err
	}
	return a.Tokens.Verify(token)
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
