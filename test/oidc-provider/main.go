// Command oidc-provider is an OpenID Connect provider for the tests, on github.com/ory/fosite. It
// signs two users in without passwords, and lets a test rotate its keys and sign any claims. It
// listens on a loopback address only, because everybody may do both.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run serves until ctx ends.
func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("oidc-provider", flag.ContinueOnError)
	addr := flags.String("addr", "127.0.0.1:9000", "loopback address to listen on")
	if err := flags.Parse(args); err != nil {
		return err
	}
	host, _, err := net.SplitHostPort(*addr)
	if ip := net.ParseIP(host); err != nil || ip == nil || !ip.IsLoopback() {
		return fmt.Errorf("-addr %s: must be a loopback address with a port", *addr)
	}
	handler, err := newProvider("http://" + *addr)
	if err != nil {
		return err
	}
	server := &http.Server{Addr: *addr, Handler: handler, ReadHeaderTimeout: 5 * time.Second}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return cmp.Or(err, errors.New("the server has ended"))
	}
	return nil
}
