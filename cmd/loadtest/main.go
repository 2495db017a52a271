// Command loadtest plays polite, impatient and hostile buyers against a running API, in a closed or an
// open loop. It measures latencies, then compares the answers that buyers received with the API's
// later state, and exits with 1 if they differ.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"flashsale.dev/seckill/internal/app"
	"flashsale.dev/seckill/internal/loadgen"
	"flashsale.dev/seckill/internal/loadgen/apiclient"
	"flashsale.dev/seckill/internal/loadgen/report"
	"flashsale.dev/seckill/internal/loadgen/verdict"
)

func main() { app.Main(run) }

// Errors that end the program with exit code 1 after the report is written.
var (
	errViolated = errors.New("FAIL: the API contradicts the answers that buyers received: see the verdict")
	errCutShort = errors.New("FAIL: the load ended early: not every buyer started and finished")
)

func run(ctx context.Context, args, environ []string, stdout, stderr io.Writer) error {
	o, err := parse(args, stdout, stderr)
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
	p, err := newLoadTest(o, s, stderr)
	if err != nil {
		return err
	}
	return p.run(ctx, stdout, stderr)
}

// loadTest is one load test, from the preparation of the sale to the verdict.
type loadTest struct {
	options
	signer
	stderr   io.Writer
	http     *http.Client // for the sale and the verdict, separate from the buyers' connections
	sale     sale
	merchant apiclient.Client
	cutShort bool // a signal or -timeout ended the load
}

func newLoadTest(o options, secret string, stderr io.Writer) (*loadTest, error) {
	s, err := newSigner(secret, o.timeout+o.settle+time.Hour)
	if err != nil {
		return nil, err
	}
	return &loadTest{options: o, signer: s, stderr: stderr, http: o.httpClient(64)}, nil
}

func (p *loadTest) run(ctx context.Context, stdout, stderr io.Writer) (err error) {
	defer p.http.CloseIdleConnections()
	if err := p.setUp(ctx); err != nil {
		return err
	}
	before := processorTime()
	result := p.load(ctx)
	cost := processorTime() - before
	// A load that a signal or -timeout ended is still checked and reported.
	judging, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.settle)
	defer cancel()
	fmt.Fprintf(stderr, "checking the orders of %d buyers\n", len(result.Holders))
	verdict := verdict.Check(judging, p.verdictCase(result))
	p.closeSale(judging)
	r := report.New(p.settings(), result, verdict, cost, p.cutShort)
	r.Notes = p.notes(r)
	if err := p.write(r, stdout, stderr); err != nil {
		return err
	}
	if p.cutShort || result.Arrived < result.Planned {
		err = errCutShort
	}
	if !verdict.OK {
		err = errors.Join(errViolated, err)
	}
	return err
}

// httpClient makes a client that obeys the flags.
func (o options) httpClient(conns int) *http.Client {
	return apiclient.NewHTTPWith(apiclient.HTTPOptions{
		Conns: conns, Timeout: o.callTimeout, LoopbackOnly: !o.allowRemote,
	})
}

// load plays the buyers, for at most -timeout.
func (p *loadTest) load(ctx context.Context) loadgen.Result {
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	httpClient := p.httpClient(p.conns)
	defer httpClient.CloseIdleConnections()
	bar := newProgress(p.stderr, p.buyers, p.quiet)
	result := loadgen.Run(ctx, loadgen.Plan{
		Bases: p.bases, GoodsID: p.sale.goodsID, HTTP: httpClient, Token: p.buyerToken,
		Buyers: p.buyers, FirstID: p.firstBuyer, Users: p.users, Rate: p.rate, Ramp: p.ramp, Spike: p.spike, StartAt: p.sale.startAt,
		InFlight: p.inFlight, Impatient: p.impatient, Hostile: p.hostile, Seed: p.seed, Quantity: p.quantity, Patience: p.patience,
		OnPoint: bar.show,
	})
	bar.end()
	p.cutShort = ctx.Err() != nil
	return result
}

func (p *loadTest) verdictCase(result loadgen.Result) verdict.Case {
	return verdict.Case{
		GoodsID: p.sale.goodsID, Result: result, Merchant: p.merchant, Limit: p.sale.limit, Exclusive: p.goods == "",
		Buyer: func(id int64) (apiclient.Client, error) {
			token, err := p.buyerToken(id)
			return apiclient.Client{Base: p.bases[int(id)%len(p.bases)], Token: token, HTTP: p.http}, err
		},
	}
}
