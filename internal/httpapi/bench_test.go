package httpapi_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"flashsale.dev/seckill/internal/auth"
	"flashsale.dev/seckill/internal/httpapi"
	"flashsale.dev/seckill/internal/order/purchase"
	"flashsale.dev/seckill/internal/seckill"
)

// instantServices returns constant answers at once, so the benchmark measures only the HTTP layer.
type instantServices struct {
	*fake
	soldOut error
}

func (instantServices) Route(string) func(string, time.Duration) {
	return func(string, time.Duration) {}
}

func (i instantServices) KnownError(int64) error { return i.soldOut }

func (i instantServices) Admit(context.Context, int64) (seckill.View, error) {
	return seckill.View{Sale: seckill.Sale{GoodsID: 43}}, i.soldOut
}

func (instantServices) IssuePath(context.Context, seckill.View, int64) (string, time.Time, error) {
	return strings.Repeat("0a", 16), time.Time{}, nil
}

func (instantServices) Place(context.Context, purchase.Request) (string, error) {
	return "06cqsm1r2ov3r4vhnl9bkdjhpk0dt6u8q6s1mvo0000g4e6a7s2k1f8t0c", nil
}

// discard is a ResponseWriter that drops the body.
type discard struct{ h http.Header }

func (d discard) Header() http.Header             { return d.h }
func (discard) Write(b []byte) (int, error)       { return len(b), nil }
func (discard) WriteString(s string) (int, error) { return len(s), nil }
func (discard) WriteHeader(int)                   {}

// BenchmarkHTTP measures the hot calls of the HTTP layer without a network. It also measures gin
// alone as the floor.
func BenchmarkHTTP(b *testing.B) {
	tokens, err := auth.New(secret, 1024, time.Now)
	if err != nil {
		b.Fatal(err)
	}
	bearer, err := tokens.Sign(buyer(), time.Hour)
	if err != nil {
		b.Fatal(err)
	}
	with := func(soldOut error) http.Handler {
		i := instantServices{fake: newFake(time.Now()), soldOut: soldOut}
		return httpapi.New(httpapi.Deps{
			Sales: i, Reader: i, LimitPath: i.LimitPath, Purchases: i, Orders: i, Payments: i,
			Health: i,
			Tokens: tokens, Metrics: i, Log: slog.New(slog.DiscardHandler),
		}, httpapi.Options{})
	}
	floor := gin.New()
	floor.POST("/randomPath",
		func(c *gin.Context) { c.Data(http.StatusOK, "application/json", []byte(`{}`)) })
	decr := "/" + strings.Repeat("0a", 16) + "/decrStock"
	for _, c := range []struct {
		name    string
		handler http.Handler
		target  string
		body    string
	}{
		{"floor: bare gin", floor, "/randomPath?goodsId=43", ""},
		{"randomPath", with(nil), "/randomPath?goodsId=43", ""},
		{
			"sold out",
			with(seckill.Sale{EndAt: time.Now().Add(time.Hour)}.CheckSelling(time.Now(), 0)),
			"/randomPath?goodsId=43", "",
		},
		{"decrStock, query", with(nil), decr + "?goodsId=43", ""},
		{"decrStock, JSON", with(nil), decr, `{"goodsId":"43","decrStock":1}`},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				r := httptest.NewRequest(http.MethodPost, c.target, strings.NewReader(c.body))
				r.Header["Authorization"] = []string{"Bearer " + bearer}
				c.handler.ServeHTTP(discard{http.Header{}}, r)
			}
		})
	}
}
