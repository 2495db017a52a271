package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"time"

	"flashsale.dev/seckill/internal/app"
	"flashsale.dev/seckill/internal/loadgen/buyer"
)

// options are the command line's.
type options struct {
	addr        string
	bases       []string // addr, taken apart
	allowRemote bool
	secretFile  string

	goods                  string
	stock, limit, quantity int64
	permits                float64
	startIn                time.Duration

	buyers, users, spike int
	rate                 float64
	ramp                 time.Duration
	impatient, hostile   float64
	seed                 uint64
	firstBuyer           int64

	profile  string
	compress float64

	patience, callTimeout, timeout, settle time.Duration
	conns, inFlight                        int

	json, html string
	quiet      bool
}

// Bounds of what may be asked for.
const (
	maxBuyers = 10_000_000
	maxRate   = 1e6
	maxConns  = 20_000
)

func parse(args []string, stdout, stderr io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("loadtest", flag.ContinueOnError)
	flags.SetOutput(stderr)
	version := flags.Bool("version", false, "print the version and end")
	o.define(flags)
	flags.Usage = func() {
		fmt.Fprint(stdout, usage)
		flags.SetOutput(stdout)
		flags.PrintDefaults()
		fmt.Fprint(stdout, environment)
	}
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if *version {
		fmt.Fprintln(stdout, "loadtest", app.Version())
		return o, flag.ErrHelp
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("loadtest takes no argument %q", flags.Arg(0))
	}
	given := map[string]bool{}
	flags.Visit(func(f *flag.Flag) { given[f.Name] = true })
	return o, o.complete(given)
}

const usage = `Usage: loadtest [flags]

Plays buyers against a running API, and checks what they were told against what the API says afterwards. It puts up a sale of its
own unless -goods names one. Exit code 0: all is right; 1: something differs, or the load could not be played to its end.

  loadtest                                           5,000 buyers, 200 at once, rush 500 units
  loadtest -rate 2000 -ramp 5s -buyers 60000         2,000 arrive each second, whatever becomes of those before
  loadtest -spike 5000 -buyers 5000 -impatient 0.3   everybody presses at the moment the sale begins
  loadtest -profile million -compress 60 -html r.html

Flags:
`

const environment = `
Environment:
  SECKILL_JWT_SECRET (at least 32 bytes)
      the secret of the API, with which the buyers' tokens are signed; if empty, the file of -secret-file

Ctrl-C ends the load early; what was told by then is checked and reported. A second one ends the program.
docs/loadtest.md tells how to read the report.
`

func (o *options) define(f *flag.FlagSet) {
	f.StringVar(&o.addr, "addr", "http://127.0.0.1:8080", "`URLs` of the APIs, comma list: the buyers are spread over them")
	f.BoolVar(&o.allowRemote, "allow-remote", false, "allow addresses that are not this machine's own: only hosts that are yours")
	f.StringVar(&o.secretFile, "secret-file", "data/jwt-secret", "`file` of the secret where SECKILL_JWT_SECRET is empty: standalone keeps one there")

	f.StringVar(&o.goods, "goods", "", "`id` of an exposed sale to rush; if empty, one of its own is put up and closed at the end")
	f.Int64Var(&o.stock, "stock", 500, "units of its own sale")
	f.Int64Var(&o.limit, "limit", 1, "units that one buyer may have of its own sale")
	f.Int64Var(&o.quantity, "quantity", 1, "units that each buyer asks for")
	f.Float64Var(&o.permits, "permits", 0, "random paths per second of its own sale; 0 is the API's default (1000)")
	f.DurationVar(&o.startIn, "start-in", 0, "time until its own sale begins, and the buyers with it; 2s with -spike")

	f.IntVar(&o.buyers, "buyers", 5000, "buyers in all, each goes the whole way once")
	f.IntVar(&o.users, "users", 0, "closed loop: so many buyers at once (200 unless -rate is given)")
	f.Float64Var(&o.rate, "rate", 0, "open loop: so many buyers arrive each second; times run from when a buyer was due")
	f.DurationVar(&o.ramp, "ramp", 0, "time in which the loop grows evenly from nothing to all of -users or -rate")
	f.IntVar(&o.spike, "spike", 0, "so many of the buyers press all at once when the sale begins")
	f.Float64Var(&o.impatient, "impatient", 0, "share of the buyers (0 to 1) who click three times at once, wait for nothing, and want more")
	f.Float64Var(&o.hostile, "hostile", 0, "share of the buyers (0 to 1) who replay others' paths and invent paths and orders")
	f.Uint64Var(&o.seed, "seed", 1, "decides who is impatient or hostile")
	f.Int64Var(&o.firstBuyer, "first-buyer", 0, "`id` of the first buyer, the others follow; by the clock if 0, so that each run has new ones")

	f.StringVar(&o.profile, "profile", "", "`name` of a ready-made load: million (1,000,000 buyers in an hour against 1,000 permits/s)")
	f.Float64Var(&o.compress, "compress", 60, "with -profile: time runs so many times faster (an hour in 1/60 is a minute at 60 times the rates)")

	f.DurationVar(&o.patience, "patience", 30*time.Second, "how long a buyer goes on when told to come again, and looks at its order")
	f.DurationVar(&o.callTimeout, "call-timeout", 10*time.Second, "longest time of one call, waiting for a connection included")
	f.DurationVar(&o.timeout, "timeout", 10*time.Minute, "longest time of the load; then nobody comes any more, and the checks are made")
	f.DurationVar(&o.settle, "settle", 2*time.Minute, "longest time for the orders to be written and the books to be read")
	f.IntVar(&o.conns, "conns", 0, "most connections; if 0, one for each of -users and -spike up to 2000, 512 for -rate")
	f.IntVar(&o.inFlight, "in-flight", 20_000, "open loop: most buyers on their way at once; who must wait for that is late, and it counts")

	f.StringVar(&o.json, "json", "", "`file` for the report as JSON; - is standard output (the table then goes to standard error)")
	f.StringVar(&o.html, "html", "", "`file` for the report as one HTML page with charts")
	f.BoolVar(&o.quiet, "quiet", false, "no progress")
}

// complete fills in what depends on other flags.
func (o *options) complete(given map[string]bool) error {
	if o.profile != "" {
		if err := o.fit(given); err != nil {
			return err
		}
	}
	if o.users == 0 && o.rate == 0 {
		o.users = 200
	}
	if o.spike > 0 && !given["start-in"] {
		o.startIn = 2 * time.Second
	}
	if o.firstBuyer == 0 {
		o.firstBuyer = time.Now().Unix() * maxBuyers
	}
	if o.conns == 0 {
		o.conns = min(2000, o.users+o.spike)
		if o.rate > 0 {
			o.conns = max(512, o.conns)
		}
	}
	for _, base := range strings.Split(o.addr, ",") {
		o.bases = append(o.bases, strings.TrimRight(strings.TrimSpace(base), "/"))
	}
	return nil
}

// check tells everything that is wrong at once.
func (o options) check(ctx context.Context) error {
	var problems []error
	wrong := func(is bool, format string, args ...any) {
		if is {
			problems = append(problems, fmt.Errorf(format, args...))
		}
	}
	wrong(o.buyers < 1 || o.buyers > maxBuyers, "-buyers must be 1 to %d", maxBuyers)
	wrong(o.users > 0 && o.rate > 0, "-users is the closed loop and -rate the open one: give one of them")
	wrong(o.users < 0 || o.users > maxConns, "-users must be 0 to %d", maxConns)
	wrong(!(o.rate >= 0 && o.rate <= maxRate), "-rate must be 0 to %g", float64(maxRate))
	wrong(o.spike < 0 || o.spike > o.buyers, "-spike must be 0 to -buyers")
	wrong(!(o.impatient >= 0 && o.hostile >= 0 && o.impatient+o.hostile <= 1), "-impatient and -hostile are shares, together at most 1")
	wrong(o.conns < 1 || o.conns > maxConns, "-conns must be 1 to %d", maxConns)
	wrong(o.inFlight < 1, "-in-flight must be above 0")
	wrong(o.quantity < 1 || o.stock < 1 || o.limit < 1 || o.firstBuyer < 1, "-quantity, -stock, -limit and -first-buyer must be above 0")
	wrong(o.ramp < 0 || o.startIn < 0 || o.patience <= 0 || o.callTimeout <= 0 || o.timeout <= 0 || o.settle <= 0,
		"-ramp and -start-in must not be negative, -patience, -call-timeout, -timeout and -settle must be above 0")
	for _, base := range o.bases {
		if err := o.target(ctx, base); err != nil {
			problems = append(problems, err)
		}
	}
	return errors.Join(problems...)
}

// target refuses what is no API's address, and another machine's unless that is allowed: somebody else's host must never be hit by
// accident. Every connection is looked at once more when it is made (buyer.Direct).
func (o options) target(ctx context.Context, base string) error {
	u, err := url.Parse(base)
	if err != nil || u.Scheme != "http" || u.Hostname() == "" || u.Path != "" || u.RawQuery != "" || u.User != nil {
		return fmt.Errorf("-addr %q: must be http://host:port", base)
	}
	if o.allowRemote {
		return nil
	}
	ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip", u.Hostname())
	if err != nil {
		return fmt.Errorf("-addr %s: %w", base, err)
	}
	for _, ip := range ips {
		if !ip.Unmap().IsLoopback() {
			return fmt.Errorf("-addr %s: %w; -allow-remote allows it, for hosts that are yours", base, buyer.ErrRemote)
		}
	}
	return nil
}
