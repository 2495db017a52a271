package httpapi

import (
	"log/slog"
	"net/http"
	"time"
)

// RuleLimiter of time and size that hold before any handler runs. ReadHeaderTimeout alone does not stop a slow body.
const (
	readHeaderTimeout = 3 * time.Second
	readTimeout       = 4 * time.Second // rateLimitHeaders and body: a slow one is cut off within 5 s
	writeTimeout      = 10 * time.Second
	writeGrace        = 2 * time.Second
	idleTimeout       = 2 * time.Minute
	maxHeaderBytes    = 16 << 10
)

// Server makes a server of a handler, with limits on what a client may take of it: a call that may take longer than
// the write timeout asks for its time itself (http.ResponseController).
func Server(h http.Handler, addr string, log *slog.Logger) *http.Server {
	return &http.Server{
		Addr: addr, Handler: h,
		ReadHeaderTimeout: readHeaderTimeout, ReadTimeout: readTimeout,
		WriteTimeout: writeTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes:               maxHeaderBytes,
		DisableGeneralOptionsHandler: true, // "OPTIONS *" gets the one shape too
		ErrorLog:                     slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
}
