package httpapi

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/auth"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/testing/must"
)

// TestStream_EndsWithItsToken checks that a stream lasts until its token expires, and at most
// streamLifetime.
func TestStream_EndsWithItsToken(t *testing.T) {
	secret := []byte("a secret of the tests, of 32 bytes or more")
	const bearer, cookie = "Bearer ", plainCookie + "="
	for _, c := range []struct {
		header, prefix string
		cached         bool
		life, want     time.Duration
	}{
		{"Authorization", bearer, false, 90 * time.Second, 90 * time.Second},
		{"Authorization", bearer, true, 90 * time.Second, 90 * time.Second},
		{"Cookie", cookie, false, 90 * time.Second, 90 * time.Second},
		{"Cookie", cookie, false, guestLife, streamLifetime},
	} {
		synctest.Test(t, func(t *testing.T) {
			tokens := must.Get(auth.New(secret, 1, time.Now))(t)
			token := must.Get(tokens.Sign(seckill.Actor{ID: "7", Role: seckill.Buyer}, c.life))(t)
			if c.cached {
				must.Get(tokens.Verify(token))(t)
			}
			a := newAPI(Deps{Tokens: tokens, Log: slog.New(slog.DiscardHandler)})
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			r.Header.Set(c.header, c.prefix+token)
			began := time.Now()
			a.engine([]route{{
				methods: http.MethodGet, path: "/", callers: isBuyer, unlimited: true,
				handle: func(ctx context.Context, r *request) (response, error) {
					if err := r.permit(ctx, nil); err != nil {
						return response{}, err
					}
					return a.stream(r, func(ctx context.Context, s eventStream) { <-ctx.Done() })
				},
			}}).ServeHTTP(httptest.NewRecorder(), r)
			require.Equal(t, c.want, time.Since(began), "%+v", c)
		})
	}
}
