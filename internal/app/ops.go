package app

import (
	"log/slog"
	"net/http"
	"net/http/pprof"
	"time"

	"flashsale.dev/seckill/internal/httpapi"
)

// Ops is the handler of the operations address: /metrics, /livez, /readyz and /debug/pprof. It has
// no authentication, so the address must be private.
func Ops(metrics http.Handler, ready httpapi.Readiness, log *slog.Logger) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", metrics)
	probes := httpapi.Probes(ready, log)
	mux.Handle("/livez", probes)
	mux.Handle("/readyz", probes)
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	return mux
}

// OpsServer makes the server of the operations address. It has no write timeout, because the caller
// chooses the length of a profile.
func OpsServer(h http.Handler, addr string) *http.Server {
	return &http.Server{
		Addr: addr, Handler: h, MaxHeaderBytes: 16 << 10,
		ReadHeaderTimeout: 3 * time.Second, ReadTimeout: 5 * time.Second,
	}
}
