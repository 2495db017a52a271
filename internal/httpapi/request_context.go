package httpapi

import (
	"context"
	"net/http"
	"net/netip"

	"github.com/gin-gonic/gin"

	"flashsale.dev/seckill/internal/seckill"
)

// requestContext holds the values that the middleware and the handler of one request share. It is
// part of the request's context.Context and ends with the request.
type requestContext struct {
	gin       *gin.Context
	requestID string
	reason    seckill.Reason // of the response; "" before there is one
	goodsID   int64          // named by a step of a purchase; 0 for every other call
}

type requestContextKey struct{}

func withRequestContext(ctx context.Context, rc *requestContext) context.Context {
	return context.WithValue(ctx, requestContextKey{}, rc)
}

// requestContextOf returns the request's values. A context without a request, such as that of a
// test or of a background task, has an empty one. Callers then need no check for nil.
func requestContextOf(ctx context.Context) *requestContext {
	if rc, ok := ctx.Value(requestContextKey{}).(*requestContext); ok {
		return rc
	}
	return &requestContext{}
}

// clientInfo holds the values that rate limits may count by, and the response header that they add
// to.
type clientInfo struct {
	method, route  string
	ip             netip.Addr
	header         func(name string) string
	responseHeader http.Header
}

// clientInfoOf returns an empty clientInfo for a context without a request.
func clientInfoOf(ctx context.Context) clientInfo {
	c := requestContextOf(ctx).gin
	if c == nil {
		return clientInfo{responseHeader: http.Header{}}
	}
	ip, _ := netip.ParseAddr(c.ClientIP()) // an invalid address counts as missing
	return clientInfo{
		method: c.Request.Method, route: c.FullPath(), ip: ip,
		header: c.Request.Header.Get, responseHeader: c.Writer.Header(),
	}
}
