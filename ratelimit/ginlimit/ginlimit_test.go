package ginlimit_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/stretchr/testify/assert"

	"flashsale.dev/seckill/ratelimit"
	"flashsale.dev/seckill/ratelimit/ginlimit"
	"flashsale.dev/seckill/ratelimit/httplimit"
)

func TestNew_WithoutKeyPanics(t *testing.T) {
	assert.PanicsWithValue(t, "ginlimit: key is nil", func() {
		ginlimit.New(nil, nil, httplimit.Options{})
	})
}

// Each tenant of the path may send one request an hour.
func Example() {
	limiter, err := ratelimit.New(ratelimit.Memory(), ratelimit.Limit{Permits: 1, Per: time.Hour})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer limiter.Close()
	gin.SetMode(gin.TestMode)
	router := gin.New()
	tenant := func(c *gin.Context) string { return c.Param("tenant") }
	router.GET("/:tenant", ginlimit.New(limiter, tenant, httplimit.Options{}),
		func(c *gin.Context) { c.String(http.StatusOK, "hello") })
	for _, path := range []string{"/a", "/a", "/b"} {
		w := httptest.NewRecorder()
		router.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		fmt.Printf("%d %q\n", w.Code, w.Body.String())
	}
	// Output:
	// 200 "hello"
	// 429 "too many requests\n"
	// 200 "hello"
}
