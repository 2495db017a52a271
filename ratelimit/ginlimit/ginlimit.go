// Package ginlimit is package httplimit for gin.
//
//	router.Use(ginlimit.New(limiter, func(c *gin.Context) string { return c.ClientIP() },
//		httplimit.Options{}))
package ginlimit

import (
	"github.com/gin-gonic/gin"

	"flashsale.dev/seckill/ratelimit"
	"flashsale.dev/seckill/ratelimit/httplimit"
)

// New makes a handler that takes one permit for each request, and ends the chain of a request that
// was not admitted. key replaces the options' KeyFunc. New panics without it, as each
// request would.
func New(
	limiter *ratelimit.Limiter, key func(*gin.Context) string, options httplimit.Options,
) gin.HandlerFunc {
	if key == nil {
		panic("ginlimit: key is nil")
	}
	limited := httplimit.New(limiter, options)
	return func(c *gin.Context) {
		if !limited.Admit(c.Writer, c.Request, key(c)) {
			c.Abort()
		}
	}
}
