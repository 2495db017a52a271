// Command standalone is the whole flash sale in one process, on embedded parts: nothing but this program is needed.
// Orders survive a restart and a kill -9.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"

	"flashsale.dev/seckill/internal/app"
	"flashsale.dev/seckill/internal/app/embedded"
	"flashsale.dev/seckill/internal/config"
)

func main() { app.Main(run) }

// options are the command line's.
type options struct {
	addr, data string
	demo, exit bool
	guests     bool
}

func run(ctx context.Context, args, environ []string, stdout, stderr io.Writer) (err error) {
	var o options
	flags := flag.NewFlagSet("standalone", flag.ContinueOnError)
	flags.StringVar(&o.addr, "addr", "", "address of the HTTP API, host:port; 127.0.0.1:8080 unless SECKILL_HTTP_ADDR says otherwise")
	flags.StringVar(&o.data, "data", "./data", "directory of the database and the secrets")
	flags.BoolVar(&o.demo, "demo", false, "put up a sale, let buyers rush it, print what came of it, and stay up")
	flags.BoolVar(&o.exit, "exit", false, "with -demo: end afterwards, with 0 when all is right")
	flags.BoolVar(&o.guests, "guests", false, "let anybody sign in as a merchant, an operator or one of two buyers with one click; always so where only this machine reaches the address")
	cfg, log, err := app.Start(config.Standalone, "standalone", flags, args, environ, stdout, stderr)
	if err != nil {
		return err
	}
	if o.addr == "" {
		o.addr = cfg.HTTP.Addr
	}
	unlock, err := lock(o.data)
	if err != nil {
		return err
	}
	defer unlock()
	if err := makeUp(o.data, &cfg.Auth); err != nil {
		return err
	}
	up, err := embedded.Start(ctx, o.data, cfg.Order.MaxBacklogAge, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, up.Close()) }()
	return serve(ctx, o, cfg, up, log, stdout)
}

// serve runs the API and the crew, and beside them the demo where it is wanted.
func serve(ctx context.Context, o options, cfg config.Config, up *embedded.Servers, log *slog.Logger, stdout io.Writer) error {
	settings, err := app.SettingsOf(cfg)
	if err != nil {
		return err
	}
	apiSettings, err := app.APISettingsOf(cfg, nil)
	if err != nil {
		return err
	}
	listener, err := app.Listen(ctx, o.addr)
	if err != nil {
		return err
	}
	apiSettings.Guests = guestsAt(listener.Addr(), len(cfg.HTTP.TrustedProxies) > 0, o.guests)
	api, err := app.NewAPI(up.Parts, settings, apiSettings)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	base := "http://" + reachable(listener.Addr())
	fmt.Fprintf(stdout, "listening on %[1]s, data in %[2]s\nlook at %[1]s/ (the shop) and %[1]s/console (its merchant's)\n", base, o.data)
	timeout := cfg.Program.ShutdownTimeout
	stages := [][]app.Worker{
		app.OpsWorkers(ctx, cfg.Program.OpsAddr, nil, api.Health.Ready, log),
		append(app.NewCrew(up.Parts, settings), api.Workers()...),
		{app.Serve(api.Server(o.addr, log), listener, timeout)},
	}
	if o.demo {
		stages = append(stages, []app.Worker{demo{base: base, tokens: api.Tokens, out: stdout, exit: o.exit}})
	}
	err = app.Run(ctx, timeout, stages...)
	if errors.Is(err, errDemoDone) {
		return nil
	}
	return err
}

// reachable is an address that a client on this machine can use.
func reachable(a net.Addr) string {
	host, port, err := net.SplitHostPort(a.String())
	if err != nil {
		return a.String()
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(strings.TrimSpace(host), port)
}
