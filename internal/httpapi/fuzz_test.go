package httpapi_test

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/auth"
	"flashsale.dev/seckill/internal/httpapi"
	"flashsale.dev/seckill/internal/seckill"
)

// FuzzRouter sends anything to any route as anybody: no panic, no 5xx, always the one shape.
func FuzzRouter(f *testing.F) {
	tokens, err := auth.New(secret, 100, time.Now)
	if err != nil {
		f.Fatal(err)
	}
	var bearers []string
	for _, a := range []seckill.Actor{buyer(), merchant(), operator()} {
		token, err := tokens.Sign(a, 24*time.Hour)
		if err != nil {
			f.Fatal(err)
		}
		bearers = append(bearers, "Bearer "+token)
	}
	h := &house{fake: newFake(time.Now()), metrics: &heard{}}
	h.sell(43)
	handler := httpapi.New(httpapi.Deps{
		Sales: h, Shop: h, Limiter: h, Desk: h, Orders: h, Cashier: h, Changes: h, Figures: h, Health: h, Tokens: tokens,
		Metrics: h.metrics, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	}, httpapi.Options{})

	f.Add(uint8(0), "POST", "/randomPath", "goodsId=43", "application/json", "")
	f.Add(uint8(0), "POST", "/0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a/decrStock", "", "", `{"goodsId":"43","decrStock":1}`)
	f.Add(uint8(1), "POST", "/admin/sales", "", "application/json", `{"title":"x","price":1,"stock":1,"startAt":"2026-11-11T12:00:00Z","endAt":"2096-11-11T13:00:00Z"}`)
	f.Add(uint8(1), "GET", "/admin/sales/43/orders", "limit=5&status=paid&cursor=b28", "", "")
	f.Add(uint8(2), "HEAD", "//sales/", "limit=5;x", "text/plain", "\xff")
	f.Fuzz(func(t *testing.T, who uint8, method, path, query, contentType, body string) {
		r := httptest.NewRequest(http.MethodGet, "/", strings.NewReader(body))
		r.Method, r.URL = method, &url.URL{Path: path, RawQuery: query}
		r.Header.Set("Authorization", bearers[int(who)%len(bearers)])
		if contentType != "" {
			r.Header.Set("Content-Type", contentType)
		}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		require.Less(t, w.Code, 500, w.Body.String())
		if kind := w.Header().Get("Content-Type"); strings.HasPrefix(kind, "text/csv") || kind == "application/yaml" {
			return
		}
		var shape struct {
			Code              int
			Reason, RequestID string
			Data              map[string]any
		}
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), &shape), w.Body.String())
		require.Equal(t, w.Code, shape.Code)
		require.NotEmpty(t, shape.Reason)
		require.NotNil(t, shape.Data)
	})
}
