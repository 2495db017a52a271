package httpapi

import (
	"context"
	"net/http"

	"github.com/gin-gonic/gin"

	openapi "flashsale.dev/seckill/api"
)

// document serves the OpenAPI document as it is, without the envelope. It changes with a release
// only, so clients may keep it for some minutes.
func (a *api) document(ctx context.Context, r *request) (response, error) {
	return response{stream: func(c *gin.Context) {
		c.Header("Cache-Control", "public, max-age=300")
		c.Data(http.StatusOK, "application/yaml", openapi.OpenAPI())
	}}, r.permit(ctx, nil)
}
