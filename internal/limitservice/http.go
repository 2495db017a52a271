package limitservice

import (
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"flashsale.dev/seckill/internal/ratelimit"
	"flashsale.dev/seckill/internal/ratelimit/gate"
	"flashsale.dev/seckill/internal/ratelimit/rules"
)

// HTTP serves the limiter as JSON:
//
//	POST /v1/acquire                       takes permits, and waits until they are good
//	GET, PUT, DELETE /v1/limiters/RULE/KEY reads, changes and resets a limiter
//	GET /livez, /readyz                    report whether the process runs and the node is ready
//
// Bodies and answers have the API's form: {"code", "reason", "message", "data"}.
type HTTP struct {
	book   *rules.Rulebook
	gate   *gate.Gate
	admin  *rules.Admin
	probes http.Handler
	log    *slog.Logger
}

// NewHTTP makes the handler. probes serves /livez and /readyz.
func NewHTTP(
	book *rules.Rulebook, gate *gate.Gate, admin *rules.Admin, probes http.Handler, log *slog.Logger,
) *HTTP {
	return &HTTP{book: book, gate: gate, admin: admin, probes: probes, log: log}
}

const (
	acquirePath  = "/v1/acquire"
	limitersPath = "/v1/limiters/"

	maxBody       = 64 << 10
	maxPermits    = 1_000_000_000
	maxWaitMillis = 30_000
	writeGrace    = 2 * time.Second // to write the answer after a wait
)

// ServeHTTP chooses the handler by path and method. It uses no ServeMux, which would redirect keys
// with slashes in a row to another key.
func (s *HTTP) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := r.URL.EscapedPath()
	switch {
	case path == acquirePath:
		s.serve(w, r, map[string]call{http.MethodPost: s.acquire})
	case strings.HasPrefix(path, limitersPath):
		s.serve(w, r, map[string]call{
			http.MethodGet: s.get, http.MethodPut: s.set, http.MethodDelete: s.delete,
		})
	case path == "/livez" || path == "/readyz":
		s.probes.ServeHTTP(w, r)
	default:
		write(w, failure(http.StatusNotFound, "NOT_FOUND", "there is no such path"))
	}
}

// call handles one method of a path. writeError answers its error.
type call func(w http.ResponseWriter, r *http.Request) (data any, err error)

func (s *HTTP) serve(w http.ResponseWriter, r *http.Request, calls map[string]call) {
	handle, ok := calls[r.Method]
	if !ok {
		for method := range calls {
			w.Header().Add("Allow", method)
		}
		write(w, failure(http.StatusMethodNotAllowed, "METHOD_NOT_ALLOWED",
			"the path has no method "+r.Method))
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	data, err := handle(w, r)
	if err != nil {
		s.writeError(w, r, err)
		return
	}
	write(w, envelope{Code: http.StatusOK, Reason: "OK", Message: "ok", Data: data})
}

func (s *HTTP) get(_ http.ResponseWriter, r *http.Request) (any, error) {
	rule, key, err := limiterOf(r)
	if err != nil {
		return nil, err
	}
	return s.admin.Get(r.Context(), rule, key)
}

// set changes the given fields of a limit on every node.
func (s *HTTP) set(_ http.ResponseWriter, r *http.Request) (any, error) {
	rule, key, err := limiterOf(r)
	if err != nil {
		return nil, err
	}
	var change rules.Change
	if err := read(r, &change); err != nil {
		return nil, err
	}
	return s.admin.Set(r.Context(), rule, key, change)
}

func (s *HTTP) delete(_ http.ResponseWriter, r *http.Request) (any, error) {
	rule, key, err := limiterOf(r)
	if err != nil {
		return nil, err
	}
	return nil, s.admin.Delete(r.Context(), rule, key)
}

// limiterOf returns the rule and the key of the path. The key may have slashes.
func limiterOf(r *http.Request) (rule, key string, err error) {
	rest := strings.TrimPrefix(r.URL.EscapedPath(), limitersPath)
	rule, key, _ = strings.Cut(rest, "/")
	rule, ruleErr := url.PathUnescape(rule)
	key, keyErr := url.PathUnescape(key)
	if ruleErr != nil || keyErr != nil || !utf8.ValidString(key) {
		return "", "", ratelimit.BadField("key", "must be UTF-8, as the rule must")
	}
	return rule, key, nil
}
