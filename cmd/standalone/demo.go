package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/schollz/progressbar/v3"

	"flashsale.dev/seckill/internal/auth"
	"flashsale.dev/seckill/internal/loadgen/apiclient"
	"flashsale.dev/seckill/internal/loadgen/buyer"
	"flashsale.dev/seckill/internal/seckill"
)

// The size of the demo.
const (
	demoUnits  = 500
	demoBuyers = 5000
	demoAtOnce = 200
	demoTTL    = time.Hour
	merchantID = 1
)

// errDemoDone stops the program after a successful demo.
var errDemoDone = errors.New("the demo is done")

// demo runs a sale with virtual buyers through the HTTP API.
type demo struct {
	base   string
	tokens *auth.Tokens
	out    io.Writer
	exit   bool
}

// Run runs the demo, and then waits for ctx unless -exit is set.
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
	d.invite(goodsID)
	<-ctx.Done()
	return nil
}

// play puts up a sale, lets the buyers rush it and holds what they were told against the ledger.
func (d demo) play(ctx context.Context) (goodsID string, err error) {
	token, err := d.tokens.Sign(seckill.Actor{ID: merchantID, Role: seckill.Merchant}, demoTTL)
	if err != nil {
		return "", err
	}
	merchant := apiclient.Client{Base: d.base, Token: token, HTTP: apiclient.NewHTTP(1)}
	now := time.Now().UTC().Truncate(time.Second)
	goodsID, err = merchant.PutUp(ctx, apiclient.NewSale{
		Title: "Demo: a kettle", Price: 1999, Stock: demoUnits, StartAt: now.Add(-time.Second), EndAt: now.Add(24 * time.Hour),
	})
	if err != nil {
		return "", err
	}
	fmt.Fprintf(d.out, "%d units are on sale as goods %s; %d buyers rush them, %d at once\n", demoUnits, goodsID, demoBuyers, demoAtOnce)
	report, err := d.rush(ctx, goodsID)
	if err != nil {
		return "", err
	}
	report.Table(d.out)
	ledger, err := merchant.Drained(ctx, goodsID)
	if err != nil {
		return "", err
	}
	fmt.Fprintf(d.out, "  ledger: total %d = available %d + pending %d + sold %d; database: stock %d, active %d; balanced: %t\n",
		ledger.Total, ledger.Available, ledger.Pending, ledger.Sold, ledger.Database.Stock, ledger.Database.Active, ledger.Balanced)
	return goodsID, verdict(report, ledger)
}

func (d demo) rush(ctx context.Context, goodsID string) (buyer.Report, error) {
	bar := progressbar.NewOptions(demoBuyers, progressbar.OptionSetWriter(d.out), progressbar.OptionSetDescription("buyers"),
		progressbar.OptionShowCount(), progressbar.OptionShowIts(), progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionOnCompletion(func() { fmt.Fprintln(d.out) }))
	return buyer.Run(ctx, buyer.Plan{
		Base: d.base, GoodsID: goodsID, Buyers: demoBuyers, Concurrency: demoAtOnce, FirstID: 1000,
		Token: d.buyerToken, OnDone: func() { _ = bar.Add(1) },
	})
}

func (d demo) buyerToken(id int64) (string, error) {
	return d.tokens.Sign(seckill.Actor{ID: id, Role: seckill.Buyer, Name: fmt.Sprintf("Buyer %d", id)}, demoTTL)
}

// verdict says what is wrong, or nil where exactly the stock was sold, to as many buyers, and every order written.
func verdict(r buyer.Report, l apiclient.Ledger) error {
	units, buyers := r.Units()
	faults := r.Sum(func(t buyer.Result) int { return t.ServerErrors })
	if units != demoUnits || buyers != demoUnits || l.Sold != demoUnits || l.Available != 0 || l.Database.Active != demoUnits || !l.Balanced || faults > 0 {
		return fmt.Errorf("sold %d units to %d buyers of %d, %d faults, ledger %+v", units, buyers, demoUnits, faults, l)
	}
	return nil
}

// invite prints curl commands that work without changes.
func (d demo) invite(goodsID string) {
	merchant, err := d.tokens.Sign(seckill.Actor{ID: merchantID, Role: seckill.Merchant}, demoTTL)
	if err != nil {
		return
	}
	buyer, err := d.buyerToken(1)
	if err != nil {
		return
	}
	fmt.Fprintf(d.out, `
Try it (the tokens are valid for an hour; Ctrl-C stops the program):

  curl %[1]s/sales/%[2]s
  curl -X POST -H 'Authorization: Bearer %[4]s' '%[1]s/randomPath?goodsId=%[2]s'
  curl -H 'Authorization: Bearer %[3]s' %[1]s/admin/sales/%[2]s/ledger
`, d.base, goodsID, merchant, buyer)
}
