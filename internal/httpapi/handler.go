package httpapi

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"flashsale.dev/seckill/internal/httpapi/params"
	"flashsale.dev/seckill/internal/seckill"
)

// request is what a handler gets: who asks, and with which fields.
type request struct {
	*params.Fields
	actor  seckill.Actor // zero where the route is open
	header http.Header
}

// serve takes a request through its steps: token, fields, handler, answer.
func (a *api) handler(rt route) gin.HandlerFunc {
	limit := a.timeout + rt.extraTime
	return func(c *gin.Context) {
		r, err := a.readRequest(c, rt)
		if err == nil && rt.precheck != nil {
			err = rt.precheck(r)
		}
		if err != nil {
			a.writeError(c, err)
			return
		}
		if !rt.unchecked { // its body has not been read: the read deadline must stand
			setDeadlines(c.Writer, rt.extraTime, limit)
		}
		ctx, cancel := context.WithTimeout(c.Request.Context(), limit)
		defer cancel()
		if err := a.limitRoute(ctx, rt, r); err != nil {
			a.writeError(c, err)
			return
		}
		ans, err := rt.handle(ctx, r)
		if err != nil {
			a.writeError(c, err)
			return
		}
		a.writeResponse(c, ans)
	}
}

func (a *api) readRequest(c *gin.Context, rt route) (*request, error) {
	if rt.signed {
		return a.readSigned(c, rt)
	}
	r := &request{header: c.Request.Header}
	if !rt.public {
		actor, err := a.authenticate(c.Request)
		if err != nil {
			return nil, err
		}
		r.actor = actor
	}
	if rt.unchecked {
		return r, nil
	}
	r.Fields = params.New(rt.fields)
	for _, p := range c.Params {
		r.AddPath(p.Key, p.Value)
	}
	err := r.Read(c.Writer, c.Request)
	if err == nil && rt.countRefusals {
		requestContextOf(c.Request.Context()).goodsID = r.purchasedGoods()
	}
	return r, err
}

// wanted is the goods that a step of a purchase names; 0 where it is none.
func (r *request) purchasedGoods() int64 {
	id, ok := params.Decimal(r.Raw("goodsId"))
	if !ok || id < 0 {
		return 0
	}
	return id
}

// authenticate takes a bearer token; a session's cookie counts only where there is none.
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

// bearer is the token of the Authorization header.
func bearer(h http.Header) (string, error) {
	values := h["Authorization"]
	if len(values) == 0 {
		return "", seckill.NewError(seckill.Unauthenticated, "a bearer token is needed")
	}
	scheme, token, _ := strings.Cut(values[0], " ")
	if len(values) > 1 || !strings.EqualFold(scheme, "Bearer") || token == "" {
		return "", seckill.NewError(seckill.Unauthenticated, "one Authorization header with a bearer token is needed")
	}
	return token, nil
}

// setDeadlines gives a call its time on the wire. The server's read deadline was for the request, which has been read; left
// standing, it would cancel a call that waits longer. The write deadline grows only where the route is patient.
func setDeadlines(w http.ResponseWriter, patience, limit time.Duration) {
	rc := http.NewResponseController(w)
	_ = rc.SetReadDeadline(time.Time{}) // a recorder in a test has no deadlines
	if patience > 0 {
		_ = rc.SetWriteDeadline(time.Now().Add(limit + writeGrace))
	}
}

// requireRole lets a role through. Who has another is told FORBIDDEN, but NOT_FOUND first where there is nothing
// to be forbidden; exists tells, and is asked only then.
func requireRole(allowed bool, exists func() error) error {
	if allowed {
		return nil
	}
	if err := exists(); seckill.ReasonOf(err) == seckill.NotFound {
		return err
	}
	return seckill.NewError(seckill.Forbidden, "your role may not do this")
}

func noLookup() error { return nil }

func isSeller(a seckill.Actor) bool { return a.Role == seckill.Merchant || a.Role == seckill.Operator }
func isBuyer(a seckill.Actor) bool  { return a.Role == seckill.Buyer }
