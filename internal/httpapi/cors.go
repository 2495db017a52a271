package httpapi

import (
	"net/http"

	"github.com/rs/cors"
)

// allowOrigins lets pages of other sites call the API (the Fetch standard, CORS). They must send a
// bearer token: without Access-Control-Allow-Credentials a browser keeps the session's cookie back,
// so no other site acts as the visitor.
func allowOrigins(origins []string, next http.Handler) http.Handler {
	if len(origins) == 0 {
		return next
	}
	const preflightAge = 10 * 60 // seconds
	return cors.New(cors.Options{
		AllowedOrigins: origins,
		AllowedMethods: []string{
			http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch,
			http.MethodDelete,
		},
		AllowedHeaders: []string{
			"Accept", "Authorization", "Content-Type", "Idempotency-Key", "If-None-Match",
			"Last-Event-ID", "X-Request-ID",
		},
		ExposedHeaders: []string{
			"ETag", "RateLimit", "RateLimit-Policy", "Location", "Retry-After", "X-Request-ID",
		},
		MaxAge: preflightAge,
	}).Handler(next)
}
