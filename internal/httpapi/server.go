package httpapi

import (
	"log/slog"
	"net/http"
	"time"
)

// Limits that hold before any handler runs. The header timeout alone would not stop a slow body.
// Every slow request holds a connection and a goroutine, so the times are short.
const (
	readHeaderTimeout = 3 * time.Second
	readTimeout       = 4 * time.Second // header and body together
	writeTimeout      = 10 * time.Second
	writeGrace        = 2 * time.Second // to write the response of a call that used all its time
	idleTimeout       = 2 * time.Minute
	maxHeaderBytes    = 16 << 10
)

// Server returns a server with limits on the time and size of requests. net/http ends the read
// deadline with the body. A handler that needs more time to write moves its own write deadline with
// http.ResponseController.
func Server(h http.Handler, addr string, log *slog.Logger) *http.Server {
	return &http.Server{
		Addr: addr, Handler: h,
		ReadHeaderTimeout: readHeaderTimeout, ReadTimeout: readTimeout,
		WriteTimeout: writeTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes:               maxHeaderBytes,
		DisableGeneralOptionsHandler: true, // "OPTIONS *" gets an envelope too
		ErrorLog:                     slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
}
