package httpapi

import (
	"context"
	"net/http"
	"net/netip"

	"github.com/gin-gonic/gin"

	"flashsale.dev/seckill/internal/seckill"
)

// requestContext is one request and what its frame and its handler tell each other. It travels in the request's context, and ends
// with the request.
type requestContext struct {
	gin       *gin.Context
	requestID string
	reason    seckill.Reason // of the answer; "" before there is one
	goodsID   int64          // the goods that a buyer wants; 0 where the call is no step of a purchase, or names none
}

type requestContextKey struct{}

func withRequestContext(ctx context.Context, e *requestContext) context.Context {
	return context.WithValue(ctx, requestContextKey{}, e)
}

// requestContextOf gives an empty one where no frame is round the context.
func requestContextOf(ctx context.Context) *requestContext {
	if e, ok := ctx.Value(requestContextKey{}).(*requestContext); ok {
		return e
	}
	return &requestContext{}
}

// clientInfo is what limits may count by, and where their header fields go.
type clientInfo struct {
	method, route string
	ip            netip.Addr
	header        func(name string) string
	answer        http.Header
}

// clientInfoOf gives an empty caller where there was no request: in tests, from other programs.
func clientInfoOf(ctx context.Context) clientInfo {
	c := requestContextOf(ctx).gin
	if c == nil {
		return clientInfo{answer: http.Header{}}
	}
	ip, _ := netip.ParseAddr(c.ClientIP()) // what is no address is counted as missing
	return clientInfo{method: c.Request.Method, route: c.FullPath(), ip: ip, header: c.Request.Header.Get, answer: c.Writer.Header()}
}
