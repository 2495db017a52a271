package app

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"net/http/pprof"
	"time"
)

// Ready reports whether a program should get requests, and the state of each dependency.
type Ready func(ctx context.Context) (ready bool, parts map[string]string)

// Ops is the handler of the operations address: /metrics (none if metrics is nil), /livez, /readyz and
// /debug/pprof. It authenticates nobody, so the address must be private.
func Ops(metrics http.Handler, ready Ready) http.Handler {
	mux := http.NewServeMux()
	if metrics != nil {
		mux.Handle("GET /metrics", metrics)
	}
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) {
		health(w, http.StatusOK, "OK", "ok", struct{}{})
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) { readyz(w, r, ready) })
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	return mux
}

func readyz(w http.ResponseWriter, r *http.Request, ready Ready) {
	ok, parts := ready(r.Context())
	data := map[string]any{"ready": ok, "parts": parts}
	if ok {
		health(w, http.StatusOK, "OK", "ok", data)
		return
	}
	w.Header().Set("Retry-After", "1")
	health(w, http.StatusServiceUnavailable, "UNAVAILABLE", "not ready", data)
}

// health writes a response in the shape of the contract.
func health(w http.ResponseWriter, status int, reason, message string, data any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	id := rand.Text()
	w.Header().Set("X-Request-ID", id)
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{ // a failed write means that the client has disconnected
		"code": status, "reason": reason, "message": message, "data": data, "requestId": id,
	})
}

// OpsServer makes the server of the operations address. It has no write timeout, because a profile
// takes as long as its caller asks.
func OpsServer(h http.Handler, addr string) *http.Server {
	return &http.Server{
		Addr: addr, Handler: h, MaxHeaderBytes: 16 << 10,
		ReadHeaderTimeout: 3 * time.Second, ReadTimeout: 5 * time.Second,
	}
}
