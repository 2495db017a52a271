package httplimit_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"flashsale.dev/seckill/ratelimit"
	"flashsale.dev/seckill/ratelimit/httplimit"
)

// Each address may send two requests, and then one each minute.
func Example() {
	limiter, err := ratelimit.New(ratelimit.Memory(),
		ratelimit.Limit{Permits: 1, Per: time.Minute, Burst: 2})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer limiter.Close()
	limited := httplimit.New(limiter, httplimit.Options{KeyFunc: httplimit.RemoteIP})
	handler := limited.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, "hello")
	}))
	for range 3 {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
		fmt.Println(w.Code, w.Header().Get("RateLimit-Policy"))
	}
	// Output:
	// 200 "limiter";q=2;w=120
	// 200 "limiter";q=2;w=120
	// 429 "limiter";q=2;w=120
}
