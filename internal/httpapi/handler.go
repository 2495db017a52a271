package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"flashsale.dev/seckill/internal/httpapi/params"
	"flashsale.dev/seckill/internal/seckill"
)

// request is the input of a handler.
type request struct {
	*params.Fields               // nil for unchecked routes
	actor          seckill.Actor // zero for public routes
	denied         error         // why the caller may not make this call; nil: it may
	// takePermits takes a permit of each rate limit of the call; nil after it was called.
	takePermits func(ctx context.Context) error
	gin         *gin.Context
	header      http.Header
	body        []byte // of a webhook, not decoded
}

// handler runs the steps of a route: authenticate, decode, handle, respond. Each handler calls
// permit before its effects, because the contract puts 400 and 404 before 403 and 429.
func (a *api) handler(rt route) gin.HandlerFunc {
	limit := callTimeout + rt.extraTime
	return func(c *gin.Context) {
		r, err := a.readRequest(c, rt)
		if err == nil && rt.precheck != nil && r.Err() == nil {
			err = rt.precheck(r)
		}
		if err != nil {
			a.writeError(c, err)
			return
		}
		if rt.extraTime > 0 { // other calls end within the server's write timeout
			rc := http.NewResponseController(c.Writer)
			// A test's recorder has no deadline.
			_ = rc.SetWriteDeadline(time.Now().Add(limit + writeGrace))
		}
		ctx, cancel := context.WithTimeout(c.Request.Context(), limit)
		defer cancel()
		r.takePermits = func(ctx context.Context) error { return a.limitRoute(ctx, rt, r) }
		res, err := rt.handle(ctx, r)
		if err == nil && r.takePermits != nil && !rt.unchecked {
			panic("httpapi: the handler of " + rt.path + " does not call permit")
		}
		if err != nil {
			a.writeError(c, err)
			return
		}
		a.writeResponse(c, res)
	}
}

// readRequest authenticates and decodes. It verifies the token before it reads the body, so
// strangers cannot make the node read bodies.
func (a *api) readRequest(c *gin.Context, rt route) (*request, error) {
	if rt.webhook {
		return a.readWebhook(c)
	}
	if rt.signed {
		return a.readSigned(c, rt)
	}
	r := &request{gin: c, header: c.Request.Header}
	if !rt.public {
		var err error
		if r.actor, r.denied, err = a.authenticate(c.Request, rt); err != nil {
			return nil, err
		}
	}
	if rt.unchecked {
		return r, nil
	}
	r.Fields = params.New(rt.fields, rt.lists)
	for _, p := range c.Params {
		r.AddPath(p.Key, p.Value)
	}
	err := r.Read(c.Writer, c.Request)
	if err == nil && len(rt.fields) == 0 {
		err = r.Err() // the handler takes no fields, so it does not ask for problems
	}
	if err == nil && rt.countErrors {
		requestContextOf(c.Request.Context()).goodsID = r.purchasedGoods()
	}
	return r, err
}

// purchasedGoods returns the goods id of a purchase's step; 0 where it has no valid one. The
// merchant's figures use it to count a sale's errors, also those before the handler.
func (r *request) purchasedGoods() int64 {
	id, ok := params.Decimal(r.Raw("goodsId"))
	if !ok || id < 0 {
		return 0
	}
	return id
}
