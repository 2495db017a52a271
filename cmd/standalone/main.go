// Command standalone runs the whole flash sale in one process with embedded servers. It needs no
// other program. Orders survive a restart and a kill -9.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"

	"flashsale.dev/seckill/internal/app"
	"flashsale.dev/seckill/internal/app/embedded"
	"flashsale.dev/seckill/internal/config"
	"flashsale.dev/seckill/internal/metrics"
)

func main() { app.Main(run) }

// options holds the command line: the few settings of a first user. All others are in the
// environment, as for the other programs.
type options struct {
	addr, data string
	addrFrom   string // the flag or the setting that sets addr, for error messages
	demo, exit bool
	guests     bool
}

// errExitAlone refuses -exit without -demo: the program would serve for ever.
var errExitAlone = errors.New("-exit ends the program after the demo: add -demo, or omit -exit")

// errDemoStopped is the error of -demo -exit if a signal ends the program before the demo's result:
// the exit code must not be that of a correct one.
var errDemoStopped = errors.New("a signal ended the demo before its result")

// stopped returns the error of a program that a signal ended; nil unless it should have ended by
// itself.
func (o options) stopped() error {
	if o.exit {
		return errDemoStopped
	}
	return nil
}

// run reads the command line, starts the embedded servers and serves until ctx ends.
func run(ctx context.Context, args, environ []string, stdout, stderr io.Writer) (err error) {
	var o options
	flags := flag.NewFlagSet("standalone", flag.ContinueOnError)
	flags.StringVar(&o.addr, "addr", "",
		"address of the HTTP API, host:port; SECKILL_HTTP_ADDR or 127.0.0.1:8080 if empty")
	flags.StringVar(&o.data, "data", "./data", "directory of the database and the secrets")
	flags.BoolVar(&o.demo, "demo", false,
		"create a sale, let virtual buyers purchase, print the result, and keep running")
	flags.BoolVar(&o.exit, "exit", false,
		"with -demo: exit afterwards, with 0 if the result is correct")
	flags.BoolVar(&o.guests, "guests", false,
		"allow every caller to sign in without a password as a merchant, an operator or one of "+
			"two buyers; without it only on this machine")
	cfg, log, err := app.Start(config.Standalone, "standalone", flags, args, environ, stdout,
		stderr)
	if err != nil {
		return err
	}
	if o.exit && !o.demo {
		return errExitAlone
	}
	o.addrFrom = "-addr"
	if o.addr == "" {
		o.addr, o.addrFrom = cfg.HTTP.Addr, "SECKILL_HTTP_ADDR"
	}
	// Lock before generating secrets: two first starts at once would otherwise generate different
	// ones.
	unlock, err := lock(o.data)
	if err != nil {
		return err
	}
	defer unlock()
	if err := fillSecrets(o.data, &cfg.Auth); err != nil {
		return err
	}
	provider, err := app.NewProvider(cfg)
	if err != nil {
		return err
	}
	up, err := embedded.Start(ctx, o.data, cfg.Order.MaxBacklogAge, log)
	if ctx.Err() != nil && err != nil {
		return o.stopped() // a signal is no failure; the next start continues the migration
	}
	if err != nil {
		return err
	}
	up.Provider = provider
	defer func() { err = errors.Join(err, up.Close()) }()
	return serve(ctx, o, cfg, up, log, stdout)
}

// serve runs the API and the workers, and the demo if it is requested. The stages start in this
// order and stop in reverse, so that the API takes no purchase that no worker would write.
func serve(
	ctx context.Context, o options, cfg config.Config, up *embedded.Servers, log *slog.Logger,
	stdout io.Writer,
) error {
	settings, err := app.SettingsOf(cfg)
	if err != nil {
		return err
	}
	registry := metrics.NewStandalone(app.Version())
	up.Observers = app.Observers{
		Reservations: registry.Reservations, Writes: registry.Writes,
		Relayed: registry.Repairs.Relayed, Repairs: registry.Repairs,
		Rebuilt: registry.Repairs.Rebuilt, LineMoved: registry.Lines.Moved,
		Webhooks: registry.Webhooks,
	}
	apiSettings := app.APISettings{
		Config: cfg, Recorder: registry.Route, CountLimit: registry.Count,
		CountFetch: registry.CountFetch, GuestsAnywhere: o.guests,
	}
	// Listening early reports a port in use before anything else starts, and finds the port if the
	// address has port 0.
	listener, err := app.Listen(ctx, o.addrFrom, o.addr)
	if err != nil {
		return err
	}
	var whyNone string
	apiSettings.Guests, whyNone = guestsAt(listener.Addr(),
		len(cfg.HTTP.TrustedProxies) > 0, o.guests)
	if whyNone != "" {
		log.Warn("sign-in without a password is off", "why", whyNone)
	}
	api, err := app.NewAPI(up.Parts, settings, apiSettings)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	base := "http://" + reachable(listener.Addr())
	fmt.Fprintf(stdout,
		"listening on %[1]s, data in %[2]s\n"+
			"open %[1]s/ (the sales) and %[1]s/console (the merchant's console)\n", base, o.data)
	timeout := cfg.Process.ShutdownTimeout
	stages := [][]app.Worker{
		app.OpsWorkers(ctx, cfg.Process.OpsAddr, registry.Handler(), api.Health.Ready, log),
		append(app.NewWorkers(up.Parts, settings), api.Workers()...),
		{app.Serve(api.Server(o.addr, log), listener, timeout, log)},
	}
	if o.demo {
		stages = append(stages,
			[]app.Worker{demo{base: base, tokens: api.Tokens, out: stdout, exit: o.exit}})
	}
	stages = append(stages, []app.Worker{app.OnStop(api.Health.Drain)})
	err = app.Run(ctx, timeout, stages...)
	switch {
	case errors.Is(err, errDemoDone):
		return nil
	case err == nil:
		return o.stopped()
	}
	return err
}

// reachable returns an address that a client on this machine can use. A wildcard address such as
// :8080 is no address to open in a browser.
func reachable(a net.Addr) string {
	host, port, err := net.SplitHostPort(a.String())
	if err != nil {
		return a.String()
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}
