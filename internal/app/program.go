package app

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"syscall"

	"github.com/redis/go-redis/v9"

	"flashsale.dev/seckill/internal/config"
	"flashsale.dev/seckill/internal/httpapi/web"
	"flashsale.dev/seckill/internal/logging"
	"flashsale.dev/seckill/internal/webhook"
)

// Main runs a program. The first SIGTERM or SIGINT ends its context; the second kills the process.
// Main prints an error to stderr. The exit code is then 1, or that of the error's ExitCode method.
func Main(run func(ctx context.Context, args, environ []string, stdout, stderr io.Writer) error) {
	redis.SetLogger(silent{})
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	go func() {
		<-ctx.Done()
		stop() // restores the default action: the second signal kills
	}()
	err := run(ctx, os.Args[1:], os.Environ(), os.Stdout, os.Stderr)
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, err)
		code := 1
		if with := (interface{ ExitCode() int })(nil); errors.As(err, &with) {
			code = with.ExitCode()
		}
		os.Exit(code)
	}
}

// silent drops what the Redis client would print on stderr, between the lines of a program's log.
// The client returns the same errors to its callers.
type silent struct{}

// Printf drops a line.
func (silent) Printf(context.Context, string, ...any) {}

// Start reads a program's arguments and settings, and opens its log. p selects the settings; name
// is the name of the binary, which help and errors contain. With nil flags the program accepts only
// -help and -version. After either of these the error is flag.ErrHelp. The checks find problems of
// settings that only the program's own packages can judge.
func Start(
	p config.Program, name string, flags *flag.FlagSet, args, environ []string, stdout,
	stderr io.Writer, checks ...func(config.Config) error,
) (config.Config, *slog.Logger, error) {
	if flags == nil {
		flags = flag.NewFlagSet(name, flag.ContinueOnError)
	}
	err := ParseFlags(flags, args, stdout, func() {
		fmt.Fprintf(stdout, "Usage: %s [flags]\n\nFlags:\n", name)
		flags.PrintDefaults()
		fmt.Fprintln(stdout, "\nEnvironment:")
		config.Help(stdout, p)
	})
	if err != nil {
		return config.Config{}, nil, err
	}
	cfg, warnings, err := config.Load(p, environ)
	for _, check := range append(checks, checkParts) {
		err = errors.Join(err, check(cfg))
	}
	if err != nil {
		for _, w := range warnings {
			err = errors.Join(err, errors.New(w))
		}
		return cfg, nil, fmt.Errorf("settings (%s -help lists them):\n%w", name, err)
	}
	limitRuntime(p, cfg.Process)
	log := logging.Logger(stderr, cfg.Process.LogLevel, cfg.Process.LogFormat)
	for _, w := range warnings {
		log.Warn("a setting needs a correction", "problem", w)
	}
	return cfg, log, nil
}

// checkParts returns the problems of settings that only the parts which read them can judge, such
// as those that name files. Those parts start one after another, and would report one problem each.
func checkParts(cfg config.Config) error {
	_, allow := parseAllow(cfg)
	_, file := loadRules(cfg.Limiter.File)
	_, name := web.NewBrand(cfg.HTTP.BrandName, "")
	_, logo := web.NewBrand("", cfg.HTTP.BrandLogo)
	var issuer error
	if cfg.OIDC.Audience != "" { // Load reports a missing one
		_, issuer = newIssuer(cfg, nil, nil)
	}
	return errors.Join(allow, file, name, logo, issuer)
}

// parseAllow parses the private hosts of webhooks.
func parseAllow(cfg config.Config) (webhook.Allow, error) {
	allow, err := webhook.ParseAllow(cfg.Webhook.Allow)
	if err != nil {
		err = fmt.Errorf("SECKILL_WEBHOOK_ALLOW: %w", err)
	}
	return allow, err
}

// ParseFlags adds -version to the flags of a program and reads its arguments. It prints the
// version, or calls help for -help, to stdout; the error is flag.ErrHelp then. Package flag prints
// a wrong flag and the whole help; here the error is one line that the caller prints.
func ParseFlags(flags *flag.FlagSet, args []string, stdout io.Writer, help func()) error {
	version := flags.Bool("version", false, "print the version and end")
	flags.SetOutput(io.Discard)
	flags.Usage = func() {}
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		flags.SetOutput(stdout)
		help()
		return err
	case err != nil:
		return fmt.Errorf("%w (%s -help lists the flags)", err, flags.Name())
	case flags.NArg() > 0:
		return fmt.Errorf("%s takes no argument %q", flags.Name(), flags.Arg(0))
	case *version:
		fmt.Fprintln(stdout, flags.Name(), Version())
		return flag.ErrHelp
	}
	return nil
}

// SettingsOf returns the services' part of a program's settings.
func SettingsOf(cfg config.Config) (Settings, error) {
	secrets, err := cfg.Auth.OrderKeys()
	keys, keysErr := cfg.Auth.Phones()
	allow, allowErr := parseAllow(cfg)
	return Settings{
		PhoneKeys: keys, WebhookAllow: allow, Currency: cfg.HTTP.Currency,
		OrderSecrets: secrets, PublishTimeout: cfg.AMQP.PublishTimeout,
		AdmissionTimeout: cfg.Order.AdmissionTimeout,
		PaymentTimeout:   cfg.Order.PaymentTimeout, ReplicaTimeout: cfg.Redis.ReplicaTimeout(),
		BatchSize: cfg.Order.BatchSize, BatchLinger: cfg.Order.BatchLinger,
	}, errors.Join(err, keysErr, allowErr)
}

// Listen opens an address that a setting has. Its error names the setting, the address and the
// remedy.
func Listen(ctx context.Context, setting, addr string) (net.Listener, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		remedy := "must be host:port of this machine"
		if errors.Is(err, syscall.EADDRINUSE) {
			remedy = "choose a free port"
		}
		return nil, fmt.Errorf("listen on %s (%s; %s): %w", addr, setting, remedy, err)
	}
	return l, nil
}
