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
	"flashsale.dev/seckill/internal/loadgen/apiclient"
)

// options are the flags.
type options struct {
	addr        string
	bases       []string // addr, split
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

// Bounds of the flags.
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

Plays buyers against a running API, then compares the answers they received with the API's later state.
It creates its own sale unless -goods names one. The report starts with PASS or FAIL.
Exit code 0: PASS; 1: a rule is violated, or the load could not be played to its end.

Examples:
  loadtest                                           5,000 buyers, 200 at once, 500 units
  loadtest -rate 2000 -ramp 5s -buyers 60000         2,000 buyers start each second
  loadtest -spike 5000 -buyers 5000 -impatient 0.3   all buyers start with the sale
  loadtest -profile million -compress 60 -html r.html

Kinds of buyers:
  polite     gets a random path, buys, obeys Retry-After, polls its order until it is written
  impatient  sends three purchases at once, waits at most 100 ms, tries to buy a second time
  hostile    uses paths of others and invented paths, reads and cancels orders of others

Flags:
`

const environment = `
Environment:
  SECKILL_JWT_SECRET (at least 32 bytes)
      the API's secret, which signs the buyers' tokens; if empty, the content of -secret-file

Ctrl-C ends the load early; the answers until then are checked and reported. A second Ctrl-C ends the program.
docs/how-to/load-test.md explains the report.
`

func (o *options) define(f *flag.FlagSet) {
	f.StringVar(&o.addr, "addr", "http://127.0.0.1:8080", "`URLs` of the APIs, separated by commas, that share the buyers")
	f.BoolVar(&o.allowRemote, "allow-remote", false, "allow other machines; use it only for hosts that you own")
	f.StringVar(&o.secretFile, "secret-file", "data/jwt-secret", "`file` with the secret if SECKILL_JWT_SECRET is empty; standalone writes it")

	f.StringVar(&o.goods, "goods", "", "`id` of an exposed sale; if empty, a sale is created and closed at the end")
	f.Int64Var(&o.stock, "stock", 500, "units of the created sale")
	f.Int64Var(&o.limit, "limit", 1, "units per buyer of the created sale")
	f.Int64Var(&o.quantity, "quantity", 1, "units of each purchase")
	f.Float64Var(&o.permits, "permits", 0, "random paths per second of the created sale; 0 is the API's default (1000)")
	f.DurationVar(&o.startIn, "start-in", 0, "time until the created sale and its buyers start; 2s with -spike")

	f.IntVar(&o.buyers, "buyers", 5000, "number of buyers; each plays one purchase")
	f.IntVar(&o.users, "users", 0, "closed loop: number of active buyers (200 unless -rate is given)")
	f.Float64Var(&o.rate, "rate", 0, "open loop: buyers that start each second; times count from the planned start")
	f.DurationVar(&o.ramp, "ramp", 0, "time of linear growth from zero to -users or -rate")
	f.IntVar(&o.spike, "spike", 0, "buyers that start together with the sale")
	f.Float64Var(&o.impatient, "impatient", 0, "share of impatient buyers, 0 to 1")
	f.Float64Var(&o.hostile, "hostile", 0, "share of hostile buyers, 0 to 1")
	f.Uint64Var(&o.seed, "seed", 1, "seed that selects impatient and hostile buyers")
	f.Int64Var(&o.firstBuyer, "first-buyer", 0, "`id` of the first buyer, counted up; 0 derives it from the clock, so that each run has new buyers")

	f.StringVar(&o.profile, "profile", "", "`name` of a predefined load: million (1,000,000 buyers in an hour, 1,000 permits/s)")
	f.Float64Var(&o.compress, "compress", 60, "with -profile: factor by which time runs faster (60: an hour in a minute)")

	f.DurationVar(&o.patience, "patience", 30*time.Second, "longest time of a buyer's retries, and of polling its order")
	f.DurationVar(&o.callTimeout, "call-timeout", 10*time.Second, "timeout of one call, waiting for a connection included")
	f.DurationVar(&o.timeout, "timeout", 10*time.Minute, "longest time of the load; the checks follow")
	f.DurationVar(&o.settle, "settle", 2*time.Minute, "longest time for pending orders and the checks")
	f.IntVar(&o.conns, "conns", 0, "most connections to one host; 0: -users + -spike up to 2000, at least 512 with -rate")
	f.IntVar(&o.inFlight, "in-flight", 20_000, "open loop: most active buyers; waiting for a place counts as lag")

	f.StringVar(&o.json, "json", "", "`file` for the report as JSON; - is standard output, and the text goes to standard error")
	f.StringVar(&o.html, "html", "", "`file` for the report as one HTML page with charts")
	f.BoolVar(&o.quiet, "quiet", false, "no progress")
}

// complete sets the defaults that depend on other flags.
func (o *options) complete(given map[string]bool) error {
	if o.profile != "" {
		if err := o.applyProfile(given); err != nil {
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

// check reports all problems together.
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

// target refuses malformed addresses, and other machines without -allow-remote: a load test must not
// hit a foreign host by accident. The HTTP client checks every connection again.
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
			return fmt.Errorf("-addr %s: %w; -allow-remote allows it", base, apiclient.ErrRemote)
		}
	}
	return nil
}
