package httpapi

import (
	"context"
	"time"

	"github.com/gin-gonic/gin"

	"flashsale.dev/seckill/internal/apierror"
	"flashsale.dev/seckill/internal/logging"
)

// requestContext holds the values that the middleware and the handler of one request share. It is
// the request's context.Context itself: one object costs less than a context per value.
type requestContext struct {
	context.Context //nolint:containedctx // which it extends
	gin             *gin.Context
	requestID       string
	reason          apierror.Reason // of the response; "" before there is one
	goodsID         int64           // named by a step of a purchase; 0 for every other call
	tokenExpiry     time.Time       // of the caller's token; zero without one
}

type requestContextKey struct{}

// Value returns the requestContext itself, its request id for the logs, or a value of the context
// that it extends.
func (rc *requestContext) Value(key any) any {
	switch key.(type) {
	case requestContextKey:
		return rc
	case logging.RequestIDKey:
		return rc.requestID
	default:
		return rc.Context.Value(key)
	}
}

// requestContextOf returns the request's values. A context without a request, such as that of a
// test or of a background task, has an empty one. Callers then need no check for nil.
func requestContextOf(ctx context.Context) *requestContext {
	if rc, ok := ctx.Value(requestContextKey{}).(*requestContext); ok {
		return rc
	}
	return &requestContext{}
}
