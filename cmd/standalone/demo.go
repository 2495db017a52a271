package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"flashsale.dev/seckill/internal/auth"
	"flashsale.dev/seckill/internal/loadgen"
	"flashsale.dev/seckill/internal/loadgen/apiclient"
	"flashsale.dev/seckill/internal/loadgen/buyer"
	"flashsale.dev/seckill/internal/loadgen/report"
	"flashsale.dev/seckill/internal/loadgen/verdict"
	"flashsale.dev/seckill/internal/seckill"
)

// The size of the demo. The demo lasts some seconds on a laptop, and ten buyers compete for each
// unit.
const (
	demoUnits  = 500
	demoBuyers = 5000
	demoAtOnce = 200
	demoTTL    = time.Hour
	merchantID = "1"
)

// errDemoDone stops the program after a successful demo.
var errDemoDone = errors.New("the demo is done")

// demo runs a sale with virtual buyers through the HTTP API. It uses no internals, so its result
// holds for every client of the API.
type demo struct {
	base   string
	tokens *auth.Tokens
	out    io.Writer
	exit   bool
}

// Run runs the demo, and then waits for ctx unless -exit is set. The program keeps serving, so that
// the user can open the sale in a browser.
func (d demo) Run(ctx context.Context) error {
	goodsID, err := d.play(ctx)
	switch {
	case ctx.Err() != nil:
		return nil
	case err != nil:
		return fmt.Errorf("demo: %w", err)
	case d.exit:
		return errDemoDone
	}
	d.printCommands(goodsID)
	<-ctx.Done()
	return nil
}

// play exposes a sale, runs its buyers and prints the report of the load. The sale starts one
// second in the past. The API would otherwise refuse buyers as too early if the clock steps back.
func (d demo) play(ctx context.Context) (goodsID string, err error) {
	token, err := d.tokens.Sign(seckill.Actor{ID: merchantID, Role: seckill.Merchant}, demoTTL)
	if err != nil {
		return "", err
	}
	merchant := apiclient.Client{Base: d.base, Token: token, HTTP: apiclient.NewHTTP(demoAtOnce)}
	now := time.Now().UTC().Truncate(time.Second)
	goodsID, err = merchant.PutUp(ctx, apiclient.NewSale{
		Title: "Demo: a kettle", Price: 1999, Stock: demoUnits, StartAt: now.Add(-time.Second),
		EndAt: now.Add(24 * time.Hour),
	})
	if err != nil {
		return "", err
	}
	fmt.Fprintf(d.out, "%d units are on sale as goods %s; %d buyers want one, %d at once\n",
		demoUnits, goodsID, demoBuyers, demoAtOnce)
	r := d.load(ctx, merchant, goodsID)
	if ctx.Err() != nil { // the checks did not end, so the report would list false differences
		return "", ctx.Err()
	}
	if err := r.Table(d.out); err != nil {
		return "", err
	}
	return goodsID, soldExactly(r)
}

// isTerminal reports whether the output is a terminal. A file would keep each state of a progress
// bar.
func isTerminal(out io.Writer) bool {
	file, ok := out.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// load runs the buyers and compares their answers with the API's later state. It waits at most a
// minute until all orders are written, which only a slow machine needs.
func (d demo) load(ctx context.Context, merchant apiclient.Client, goodsID string) report.Report {
	bar := progressbar.NewOptions(demoBuyers, progressbar.OptionSetWriter(d.out),
		progressbar.OptionSetDescription("buyers"), progressbar.OptionShowCount(),
		progressbar.OptionShowIts(), progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionSetVisibility(isTerminal(d.out)),
		progressbar.OptionOnCompletion(func() { fmt.Fprintln(d.out) }))
	plan := loadgen.Plan{
		Bases: []string{d.base}, GoodsID: goodsID, HTTP: apiclient.NewHTTP(demoAtOnce),
		Token:  d.buyerToken,
		Buyers: demoBuyers, Users: demoAtOnce, FirstID: 1000,
		OnPoint: func(p loadgen.Point) { _ = bar.Add(p.Done) },
	}
	defer plan.HTTP.CloseIdleConnections()
	result := loadgen.Run(ctx, plan)
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	checked := verdict.Check(ctx, verdict.Case{
		Plan: plan, Result: result, Merchant: merchant, Stock: demoUnits, Limit: 1, Exclusive: true,
	})
	return report.New(report.Settings{Plan: plan}, result, checked, false)
}

// buyerToken signs a buyer's token. It outlives the demo, because printCommands prints one.
func (d demo) buyerToken(id int64) (string, error) {
	actor := seckill.Actor{
		ID: strconv.FormatInt(id, 10), Role: seckill.Buyer,
		Name: fmt.Sprintf("Buyer %d", id),
	}
	return d.tokens.Sign(actor, demoTTL)
}

// soldExactly returns an error unless the whole stock was sold and every other buyer was refused as
// sold out. The verdict alone would accept a demo in which half of the buyers gave up. A 503 is no
// fault, because the buyers repeat the call.
func soldExactly(r report.Report) error {
	won, soldOut, l := r.Count(buyer.Won), r.Count(buyer.SoldOut), r.Verdict.Ledger
	if !r.Passed() || won != demoUnits || won+soldOut != demoBuyers || l.Sold != demoUnits {
		return fmt.Errorf(
			"%d buyers won, %d found it sold out, %d units sold, ledger %+v, differences %v",
			won, soldOut, l.Sold, l, r.Verdict.Differences)
	}
	return nil
}

// printCommands prints curl commands that work without changes. They contain tokens, so that a
// first user need not sign any.
func (d demo) printCommands(goodsID string) {
	merchant, err := d.tokens.Sign(seckill.Actor{ID: merchantID, Role: seckill.Merchant}, demoTTL)
	anyBuyer, errBuyer := d.buyerToken(1)
	if err != nil || errBuyer != nil {
		return
	}
	fmt.Fprintf(d.out, `
Try it (the tokens are valid for an hour; Ctrl-C stops the program):

  curl %[1]s/sales/%[2]s
  curl -X POST -H 'Authorization: Bearer %[4]s' '%[1]s/randomPath?goodsId=%[2]s'
  curl -H 'Authorization: Bearer %[3]s' %[1]s/admin/sales/%[2]s/ledger
`, d.base, goodsID, merchant, anyBuyer)
}
