package app

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"time"

	"flashsale.dev/seckill/internal/httpapi"
)

// opsHandler serves the operations address: /metrics, /livez, /readyz and /debug/pprof. It has no
// authentication, so the address must be private.
func opsHandler(metrics http.Handler, ready httpapi.Readiness, log *slog.Logger) http.Handler {
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

// OpsWorkers serves the operations address. A port in use only causes a warning, because several
// programs may share a machine. It checks readiness once, which logs why a Redis is unfit.
func OpsWorkers(
	ctx context.Context, addr string, metrics http.Handler, ready httpapi.Readiness, log *slog.Logger,
) []Worker {
	_, _ = ready(ctx) // the log has the reason; the program starts, and sells once Redis is fit
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		log.Warn("cannot listen on SECKILL_OPS_ADDR: no metrics and profiles", "addr", addr, "err",
			err)
		return nil
	}
	server := &http.Server{ // without a write timeout: the caller chooses the length of a profile
		Addr: addr, Handler: opsHandler(metrics, ready, log), MaxHeaderBytes: 16 << 10,
		ReadHeaderTimeout: 3 * time.Second, ReadTimeout: 5 * time.Second,
	}
	return []Worker{Serve(server, l, time.Second, log)}
}
