package buyer

import (
	"context"
	"net/http"
	"time"

	"flashsale.dev/seckill/internal/loadgen/apiclient"
)

// Buyer is one who tries to buy.
type Buyer struct {
	apiclient.Client
	ID       int64
	GoodsID  string
	Quantity int64
	Patience time.Duration // how long it goes on when told to come again
	// Stubborn buyers ask again, with the same path, when a connection breaks, and for a new path where theirs is gone.
	Stubborn bool
	Bases    []string      // where a stubborn buyer turns to, one after another
	Again    int           // after a 202 the same path is asked so many times more
	Greedy   bool          // after a 202 it asks for a new path and tries to buy once more
	Cancels  bool          // it cancels what it bought once that is written, twice
	Glance   time.Duration // longest pause between two looks at an order that is not written yet; 500 ms if 0
	Won      func()        // called at the first 202; may be nil

	// Clicks is how often the buyer presses "buy" at the same moment, with one path; 1 if 0.
	Clicks int
	// Hurry is the longest an impatient buyer waits, whatever the answer says; 0 is a polite one.
	Hurry time.Duration
	// Early buyers who are told NOT_STARTED ask again after so long; 0 takes it for a no.
	Early time.Duration
	// Due is when the buyer meant to begin: all times are counted from there. Zero is the moment of Buy.
	Due time.Time
	// Saw is told each call as it ends, and Path each random path as it comes. Both may be nil, and are called from the
	// goroutines of the calls.
	Saw  func(Call)
	Path func(path string)
}

// Step is what a call is for.
type Step string

// The steps of the way, and what else is called on it.
const (
	StepPath   Step = "path"   // POST /randomPath
	StepBuy    Step = "buy"    // POST /{randomPath}/decrStock
	StepOrder  Step = "order"  // GET /orders/{orderSn}
	StepCancel Step = "cancel" // POST /orders/{orderSn}/cancel
)

// Call is one call and how it ended: with an answer, or with an error where none could be had or read.
type Call struct {
	Step   Step
	Answer apiclient.Answer
	Err    error
	Took   time.Duration // since the buyer meant to call
}

// Buy goes the whole way once: path, purchase, and the order until it is written.
func (b Buyer) Buy(ctx context.Context) (Told, error) {
	began := time.Now()
	if !b.Due.IsZero() {
		began = b.Due
	}
	t := Told{BuyerID: b.ID, Quantity: b.Quantity, Began: began, due: b.Due}
	err := b.purchase(ctx, &t, began.Add(b.Patience))
	t.Bought = time.Since(began)
	if err == nil && t.Outcome == Won && b.Greedy {
		err = b.onceMore(ctx, &t, time.Now().Add(b.Patience))
	}
	if err == nil && t.Outcome == Won {
		err = b.watch(ctx, &t, time.Now().Add(b.Patience))
		t.Written = time.Since(began) - t.Bought
	}
	if err == nil && t.Status == "created" && b.Cancels {
		err = b.cancel(ctx, &t, time.Now().Add(b.Patience))
	}
	return t, err
}

// onceMore tries to buy again; whatever comes of it, the first order is the one that is watched.
func (b Buyer) onceMore(ctx context.Context, t *Told, until time.Time) error {
	first := *t
	b.Won, b.Again = nil, 0
	_, err := b.purchaseOnce(ctx, t, until)
	t.Outcome, t.Reason, t.OrderSn = first.Outcome, first.Reason, first.OrderSn
	return err
}

// cancel gives the order back, and asks for it a second time, which must say the same.
func (b Buyer) cancel(ctx context.Context, t *Told, until time.Time) error {
	for range 2 {
		a, err := b.insist(ctx, t, until, StepCancel, "/orders/"+t.OrderSn+"/cancel")
		switch {
		case err != nil || a.Status == 0 || a.Status >= 500:
			return err
		case a.Status == http.StatusOK:
			t.see("cancelled")
		default:
			t.see(a.Reason)
		}
	}
	return nil
}

// purchase asks for a path and buys with it, with a new one where a stubborn buyer's is gone.
func (b Buyer) purchase(ctx context.Context, t *Told, until time.Time) error {
	for {
		gone, err := b.purchaseOnce(ctx, t, until)
		if err != nil || !gone || !b.Stubborn || time.Now().After(until) {
			return err
		}
	}
}

// purchaseOnce tells whether the path was gone.
func (b Buyer) purchaseOnce(ctx context.Context, t *Told, until time.Time) (gone bool, err error) {
	a, err := b.insist(ctx, t, until, StepPath, "/randomPath?goodsId="+b.GoodsID)
	if err != nil || a.Status != http.StatusOK {
		t.end(a)
		return false, err
	}
	var path struct {
		RandomPath string `json:"randomPath"`
	}
	if err := a.Into(&path); err != nil {
		return false, err
	}
	t.Paths++
	if b.Path != nil {
		b.Path(path.RandomPath)
	}
	a, err = b.press(ctx, t, until, path.RandomPath)
	if err != nil || a.Status != http.StatusAccepted {
		t.end(a)
		return a.Reason == "BAD_PATH", err
	}
	t.Outcome, t.Reason, t.OrderSn = Won, a.Reason, t.Heard[len(t.Heard)-1].OrderSn
	if b.Won != nil {
		b.Won()
	}
	for range b.Again {
		if _, err := b.buyWith(ctx, t, until, path.RandomPath); err != nil {
			return false, err
		}
	}
	return false, nil
}
