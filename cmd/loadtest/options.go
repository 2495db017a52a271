package main

import (
	"context"
	_ "embed" // for the usage text below
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"strings"
	"time"

	"flashsale.dev/seckill/internal/app"
	"flashsale.dev/seckill/internal/loadgen"
	"flashsale.dev/seckill/internal/loadgen/apiclient"
)

// options are the flags. The embedded plan holds those that describe the buyers, for loadgen.Run
// and the report. It is a struct rather than a flag set, so that tests can fill it.
type options struct {
	loadgen.Plan
	addr, secretFile string
	allowRemote      bool

	// goods is the id of an existing sale. If it is empty, the other fields describe a created
	// sale.
	goods        string
	stock, limit int64         // units: of the sale, and per buyer
	permits      float64       // random paths per second; 0: the API's default
	startIn      time.Duration // until the sale starts
	room         bool          // the sale has a waiting room
	habits       loadgen.Room  // of the buyers in its line

	// profile selects a predefined load. It runs compress times as fast; compress is 1 without one.
	profile  string
	compress float64

	// callTimeout bounds one call, timeout the load, settle the checks after it.
	callTimeout, timeout, settle time.Duration
	conns                        int    // connections to one host
	json, html                   string // files of the report; "": none, "-": standard output
}

// Bounds of the flags. They catch typing errors: a larger load would exhaust the ports and the
// memory of one machine, and measure that machine instead of the API.
const (
	maxBuyers = 10_000_000
	maxUsers  = 20_000
)

// usage is the help text before the list of flags.
//
//go:embed usage.txt
var usage string

// parse reads the flags. For -help and -version it prints the text and returns flag.ErrHelp.
func parse(args []string, stdout io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("loadtest", flag.ContinueOnError)
	o.define(flags)
	err := app.ParseFlags(flags, args, stdout, func() {
		fmt.Fprint(stdout, usage)
		flags.PrintDefaults()
	})
	if err != nil {
		return o, err
	}
	provided := map[string]bool{}
	flags.Visit(func(f *flag.Flag) { provided[f.Name] = true })
	return o, o.complete(provided)
}

// define binds the flags to the options. The help prints each text beside its flag; a word in back
// quotes names the flag's value.
func (o *options) define(f *flag.FlagSet) {
	f.StringVar(&o.addr, "addr", "http://127.0.0.1:8080", "`URLs` of the APIs, separated by commas")
	f.BoolVar(&o.allowRemote, "allow-remote", false, "allow other machines, if you own them")
	f.StringVar(&o.secretFile, "secret-file", "data/jwt-secret", "`file` with the signing secret")

	f.StringVar(&o.goods, "goods", "", "`id` of an exposed sale; if empty, one is created")
	f.Int64Var(&o.stock, "stock", 500, "units of the created sale")
	f.Int64Var(&o.limit, "limit", 1, "units per buyer of the created sale")
	f.Int64Var(&o.Quantity, "quantity", 1, "units of each purchase")
	f.Float64Var(&o.permits, "permits", 0, "random paths per second; 0 is the API's default (1000)")
	f.DurationVar(&o.startIn, "start-in", 0,
		"time until the created sale starts; 2s with -spike, 10s with -room")

	f.IntVar(&o.Buyers, "buyers", 5000, "number of buyers; each plays one purchase")
	f.IntVar(&o.Users, "users", 0, "closed loop: active buyers (200 unless -rate is given)")
	f.Float64Var(&o.Rate, "rate", 0, "open loop: buyers that start each second")
	f.DurationVar(&o.Ramp, "ramp", 0, "time of linear growth from zero to -users or -rate")
	f.IntVar(&o.Spike, "spike", 0, "buyers that start together with the sale")
	f.Float64Var(&o.Impatient, "impatient", 0, "share of impatient buyers, 0 to 1")
	f.Float64Var(&o.Hostile, "hostile", 0, "share of hostile buyers, 0 to 1")
	f.Uint64Var(&o.Seed, "seed", 1, "seed that selects impatient and hostile buyers")

	f.BoolVar(&o.room, "room", false,
		"the created sale has a waiting room, and buyers wait in its line")
	f.DurationVar(&o.habits.Within, "return-within", time.Second,
		"with -room: longest time from a returned unit to the next admission")
	f.Float64Var(&o.habits.Eager, "eager", .05, "with -room: share that asks ten times a second")
	f.Float64Var(&o.habits.Leavers, "leavers", .07, "with -room: share that leaves when called")
	f.Float64Var(&o.habits.Sleepers, "sleepers", .07, "with -room: share that sleeps when called")
	f.Float64Var(&o.habits.Unpaid, "unpaid", .06, "with -room: share that buys and never pays")

	f.StringVar(&o.profile, "profile", "", "`name` of a load: million (buyers in an hour)")
	f.Float64Var(&o.compress, "compress", 60, "with -profile: factor by which time runs faster")

	f.DurationVar(&o.Patience, "patience", 30*time.Second, "longest time of retries")
	f.DurationVar(&o.callTimeout, "call-timeout", 10*time.Second, "timeout of one call")
	f.DurationVar(&o.timeout, "timeout", 10*time.Minute, "longest time of the load")
	f.DurationVar(&o.settle, "settle", 2*time.Minute, "longest time of the checks")

	f.StringVar(&o.json, "json", "", "`file` for the report as JSON; - is standard output")
	f.StringVar(&o.html, "html", "", "`file` for the report as one HTML page with charts")
}

// complete sets the defaults that depend on other flags. Buyer ids derive from the clock, so that
// each run has new buyers. Ids of an earlier run would meet its limits per buyer and be refused.
func (o *options) complete(provided map[string]bool) error {
	if o.profile == "" {
		o.compress = 1
	} else if err := o.applyProfile(provided); err != nil {
		return err
	}
	if o.room { // buyers wait together, so they cannot be the users of a closed loop
		setDefault(provided["rate"], &o.Rate, 1000)
	}
	if o.Users == 0 && o.Rate == 0 {
		o.Users = 200
	}
	setDefault(provided["start-in"] || o.Spike <= 0, &o.startIn, 2*time.Second)
	if o.room {
		o.Room = &o.habits
		setDefault(provided["start-in"], &o.startIn, 10*time.Second)
	}
	o.FirstID = time.Now().Unix() * maxBuyers
	o.conns = min(2000, o.Users+o.Spike)
	if o.Rate > 0 {
		o.conns = max(512, o.conns)
	}
	for base := range strings.SplitSeq(o.addr, ",") {
		o.Bases = append(o.Bases, strings.TrimRight(strings.TrimSpace(base), "/"))
	}
	return nil
}

// check reports all problems together. A user then corrects the command line once.
func (o options) check(ctx context.Context) error {
	var problems []error
	wrong := func(is bool, problem string) {
		if is {
			problems = append(problems, errors.New(problem))
		}
	}
	shares := o.Impatient >= 0 && o.Hostile >= 0 && o.Impatient+o.Hostile <= 1
	wrong(o.Buyers < 1 || o.Buyers > maxBuyers, "-buyers must be 1 to 10000000")
	wrong(o.Users > 0 && o.Rate > 0, "set one of -users (closed loop) and -rate (open loop)")
	wrong(o.Users < 0 || o.Users > maxUsers, "-users must be 0 to 20000")
	wrong(!(o.Rate >= 0 && o.Rate <= 1e6), "-rate must be 0 to 1000000") // true for NaN
	wrong(o.Spike < 0 || o.Spike > o.Buyers, "-spike must be 0 to -buyers")
	h := o.habits
	wrong(o.room && (o.goods != "" || o.Impatient > 0 || o.Quantity > 1 || o.limit > 1),
		"-room takes no -goods, -impatient, -quantity or -limit")
	wrong(min(h.Eager, h.Leavers, h.Sleepers, h.Unpaid) < 0 ||
		h.Eager+h.Leavers+h.Sleepers+h.Unpaid > 1,
		"-eager, -leavers, -sleepers and -unpaid are shares, together at most 1")
	wrong(!shares, "-impatient and -hostile are shares, together at most 1")
	wrong(min(o.Quantity, o.stock, o.limit) < 1, "-quantity, -stock and -limit must be above 0")
	wrong(o.goods == "" && o.Quantity > o.limit, "-quantity must be at most -limit")
	wrong(min(o.Ramp, o.startIn) < 0, "-ramp and -start-in must not be negative")
	wrong(min(o.Patience, o.callTimeout, o.timeout, o.settle) <= 0,
		"-patience, -call-timeout, -timeout and -settle must be above 0")
	for _, base := range o.Bases {
		problems = append(problems, o.target(ctx, base))
	}
	problems = append(problems, writable("-json", o.json), writable("-html", o.html))
	return errors.Join(problems...)
}

// writable opens the file of a report as its writer will, because otherwise a wrong name would show
// only after the load. It keeps a report that exists.
func writable(flag, name string) error {
	if name == "" || name == "-" {
		return nil
	}
	f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("%s: %w", flag, err)
	}
	return f.Close()
}

// target refuses malformed addresses, and other machines without -allow-remote: a load test must
// not hit a foreign host by accident. The HTTP client checks every connection again.
func (o options) target(ctx context.Context, base string) error {
	u, err := url.Parse(base)
	if err != nil || u.Hostname() == "" || base != "http://"+u.Host {
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
