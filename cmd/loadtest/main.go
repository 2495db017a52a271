// Command loadtest runs polite, impatient and hostile buyers against a running API, in a closed or
// an open loop. It measures latencies, compares the answers that buyers received with the API's
// later state, and exits with 1 if they differ.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"flashsale.dev/seckill/internal/app"
	"flashsale.dev/seckill/internal/auth"
	"flashsale.dev/seckill/internal/loadgen"
	"flashsale.dev/seckill/internal/loadgen/apiclient"
	"flashsale.dev/seckill/internal/loadgen/report"
	"flashsale.dev/seckill/internal/loadgen/verdict"
	"flashsale.dev/seckill/internal/seckill"
)

func main() { app.Main(run) }

// Errors that end the program with exit code 1 after the report is written.
var (
	errViolated = errors.New("FAIL: the API contradicts the answers of the load: see the verdict")
	errCutShort = errors.New("FAIL: the load ended early: not every buyer started and finished")
)

// run is the whole program, from the flags to the report. It returns an error that names the flag,
// file or address at fault, or one of the errors above.
func run(ctx context.Context, args, environ []string, stdout, stderr io.Writer) error {
	o, err := parse(args, stdout)
	if err != nil {
		return err
	}
	if err := o.check(ctx); err != nil {
		return err
	}
	s, err := secret(environ, o.secretFile)
	if err != nil {
		return err
	}
	p, err := newLoadTest(o, s)
	if err != nil {
		return err
	}
	defer p.http.CloseIdleConnections()
	return p.run(ctx, stdout, stderr)
}

// loadTest is one load test, from the preparation of the sale to the verdict.
type loadTest struct {
	options
	tokens   *auth.Tokens
	http     *http.Client // for the sale and the verdict, separate from the buyers' connections
	merchant apiclient.Client
}

// newLoadTest prepares a load test. secret must be the API's, which checks the signature of every
// token. The verdict reads over connections of its own, because the load may have used up the
// buyers'.
func newLoadTest(o options, secret string) (*loadTest, error) {
	tokens, err := auth.New([]byte(secret), 0, time.Now)
	p := &loadTest{options: o, tokens: tokens, http: o.httpClient(64)}
	p.Token = p.buyerToken
	if err != nil {
		err = fmt.Errorf("SECKILL_JWT_SECRET or -secret-file: %w", err)
	}
	return p, err
}

// httpClient makes a client that obeys the flags: it refuses connections to other machines unless
// -allow-remote is set. The check of the flags resolves names once; a name may resolve to another
// host later.
func (o options) httpClient(conns int) *http.Client {
	client := apiclient.NewLoopbackHTTP(conns)
	if o.allowRemote {
		client = apiclient.NewHTTP(conns)
	}
	client.Timeout = o.callTimeout
	return client
}

// sign makes a token that outlives the load and the checks. A token that expires in between would
// look like a defect of the API.
func (p *loadTest) sign(a seckill.Actor) (string, error) {
	return p.tokens.Sign(a, p.timeout+p.settle+time.Hour)
}

// buyerToken signs a buyer's token. Each token has its own id; all share a name and a phone number.
// The order stores both, so its size is that of a real one.
func (p *loadTest) buyerToken(id int64) (string, error) {
	a := seckill.Actor{
		ID: strconv.FormatInt(id, 10), Role: seckill.Buyer, Name: "Load Test",
		Phone: "13800000000",
	}
	return p.sign(a)
}

// run runs the load, checks the answers and writes the report. It also checks and reports a load
// that a signal or -timeout ended, because half a load finds defects too. The checks have their own
// time after a signal.
func (p *loadTest) run(ctx context.Context, stdout, stderr io.Writer) error {
	if err := p.setUp(ctx); err != nil {
		return err
	}
	result, cutShort := p.load(ctx, stderr)
	checking, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.settle)
	defer cancel()
	fmt.Fprintf(stderr, "checking the orders of %d buyers\n", len(result.Holders))
	c := verdict.Case{
		Plan: p.Plan, Result: result, Merchant: p.merchant, Limit: p.limit,
		Exclusive: p.goods == "", CutShort: cutShort,
	}
	if c.Exclusive { // others may change the stock of a sale of -goods
		c.Stock = p.stock
	}
	checked := verdict.Check(checking, c)
	if err := p.closeSale(checking); err != nil {
		fmt.Fprintf(stderr, "the sale stays open: %v\n", err)
	}
	r := report.New(p.settings(), result, checked, cutShort)
	r.Notes = p.notes(r)
	if err := p.write(r, stdout, stderr); err != nil {
		return err
	}
	if !checked.OK {
		return errViolated
	}
	if !r.Passed() {
		return errCutShort
	}
	return nil
}

// load runs the buyers, for at most -timeout. It reports whether a signal or the timeout ended the
// load. It works on a copy of the plan, so the report's plan has no client and no callback.
func (p *loadTest) load(ctx context.Context, stderr io.Writer) (loadgen.Result, bool) {
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	plan := p.Plan
	plan.HTTP, plan.OnPoint = p.httpClient(p.conns), progress(stderr, p.Buyers)
	defer plan.HTTP.CloseIdleConnections()
	return loadgen.Run(ctx, plan), ctx.Err() != nil
}
