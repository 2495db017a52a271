// Command loadtest plays buyers against a running API: politely, impatiently and with bad intent, in a closed loop or an
// open one. It measures what they meet, and then holds what they were told against what the API says: it exits with 1
// where the two differ.
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
	"flashsale.dev/seckill/internal/loadgen/buyer"
	"flashsale.dev/seckill/internal/loadgen/report"
	"flashsale.dev/seckill/internal/loadgen/verdict"
)

func main() { app.Main(run) }

// Errors that end the program with 1 after everything has been told.
var (
	errDiffers  = errors.New("what buyers were told is not what the API says: see the verdict")
	errCutShort = errors.New("the load was cut short: not all buyers came, or the last had to leave")
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
	p, err := newPlay(o, s, stderr)
	if err != nil {
		return err
	}
	return p.run(ctx, stdout, stderr)
}

// play is one load from the sale's setting up to the verdict.
type play struct {
	options
	signer
	stderr io.Writer
	books  *http.Client // of those who look after the books, apart from the buyers' connections
	sale   sale
	keeper apiclient.Client // who looks after the sale
	cut    bool             // the load was ended before its end
}

func newPlay(o options, secret string, stderr io.Writer) (*play, error) {
	s, err := newSigner(secret, o.timeout+o.settle+time.Hour)
	if err != nil {
		return nil, err
	}
	direct := buyer.NewDirect(buyer.DirectOptions{Conns: 64, Timeout: o.callTimeout, AllowRemote: o.allowRemote})
	return &play{options: o, signer: s, stderr: stderr, books: direct.Client()}, nil
}

func (p *play) run(ctx context.Context, stdout, stderr io.Writer) (err error) {
	defer p.books.CloseIdleConnections()
	if err := p.setUp(ctx); err != nil {
		return err
	}
	before := processorTime()
	result := p.load(ctx)
	cost := processorTime() - before
	// Told to end (a signal, or -timeout), it still says what came of it.
	judging, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.settle)
	defer cancel()
	fmt.Fprintf(stderr, "reading the books of %d buyers who were promised something\n", len(result.Kept))
	verdict := verdict.Judge(judging, p.theCase(result))
	p.tidy(judging)
	r := report.New(p.settings(), result, verdict, cost)
	r.Notes = p.notes(r)
	if err := p.tell(r, stdout, stderr); err != nil {
		return err
	}
	if result.Came < result.Planned || p.cut {
		err = errCutShort
	}
	if !verdict.OK {
		err = errors.Join(errDiffers, err)
	}
	return err
}

// load lets the buyers loose, for at most the time that was given.
func (p *play) load(ctx context.Context) loadgen.Result {
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	direct := buyer.NewDirect(buyer.DirectOptions{Conns: p.conns, Timeout: p.callTimeout, AllowRemote: p.allowRemote})
	defer direct.CloseIdleConnections()
	defer context.AfterFunc(ctx, direct.Abort)()
	bar := newProgress(p.stderr, p.buyers, p.quiet)
	result := loadgen.Run(ctx, loadgen.Plan{
		Bases: p.bases, GoodsID: p.sale.goodsID, HTTP: direct.Client(), Token: p.buyerToken,
		Buyers: p.buyers, FirstID: p.firstBuyer, Users: p.users, Rate: p.rate, Ramp: p.ramp, Spike: p.spike, StartAt: p.sale.startAt,
		InFlight: p.inFlight, Impatient: p.impatient, Hostile: p.hostile, Seed: p.seed, Quantity: p.quantity, Patience: p.patience,
		Watch: bar.show,
	})
	bar.end()
	p.cut = ctx.Err() != nil
	return result
}

func (p *play) theCase(result loadgen.Result) verdict.Case {
	return verdict.Case{
		GoodsID: p.sale.goodsID, Result: result, Keeper: p.keeper, Limit: p.sale.limit, Mine: p.goods == "",
		Buyer: func(id int64) (apiclient.Client, error) {
			token, err := p.buyerToken(id)
			return apiclient.Client{Base: p.bases[int(id)%len(p.bases)], Token: token, HTTP: p.books}, err
		},
	}
}
