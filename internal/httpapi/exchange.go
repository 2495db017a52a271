package httpapi

import (
	"context"
	"net/http"
	"net/netip"

	"github.com/gin-gonic/gin"

	"flashsale.dev/seckill/internal/seckill"
)

// exchange is one request and what its frame and its handler tell each other. It travels in the request's context, and ends
// with the request.
type exchange struct {
	gin       *gin.Context
	requestID string
	reason    seckill.Reason // of the answer; "" before there is one
	wanted    int64          // the goods that a buyer wants; 0 where the call is no step of a purchase, or names none
}

type exchangeKey struct{}

func withExchange(ctx context.Context, e *exchange) context.Context {
	return context.WithValue(ctx, exchangeKey{}, e)
}

// exchangeOf gives an empty one where no frame is round the context.
func exchangeOf(ctx context.Context) *exchange {
	if e, ok := ctx.Value(exchangeKey{}).(*exchange); ok {
		return e
	}
	return &exchange{}
}

// caller is what limits may count by, and where their header fields go.
type caller struct {
	method, route string
	ip            netip.Addr
	header        func(name string) string
	answer        http.Header
}

// callerOf gives an empty caller where there was no request: in tests, from other programs.
func callerOf(ctx context.Context) caller {
	c := exchangeOf(ctx).gin
	if c == nil {
		return caller{answer: http.Header{}}
	}
	ip, _ := netip.ParseAddr(c.ClientIP()) // what is no address is counted as missing
	return caller{method: c.Request.Method, route: c.FullPath(), ip: ip, header: c.Request.Header.Get, answer: c.Writer.Header()}
}
