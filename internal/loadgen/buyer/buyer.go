package buyer

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"

	"flashsale.dev/seckill/internal/loadgen/apiclient"
)

// Buyer is one virtual buyer: its identity, its behaviour and the hooks that observe it.
type Buyer struct {
	apiclient.Client
	ID       int64
	GoodsID  string
	Quantity int64
	// Patience bounds the retries of each phase: purchase, polling.
	Patience time.Duration
	// RetryErrors repeats a call with the same path after a connection error or a server error. It
	// also requests a new path when the API answers BAD_PATH.
	RetryErrors bool
	// Bases are the APIs to which a buyer with RetryErrors sends its retries, in turn.
	Bases     []string
	Repeats   int  // calls with the same path after the first 202
	BuysAgain bool // requests a second path after the first 202 and tries to buy with it
	// MaxPollInterval bounds the pause between two reads of a queued order; 500 ms if 0.
	MaxPollInterval time.Duration
	OnAccepted      func() // called at the first 202; may be nil

	// ParallelRequests is the number of simultaneous purchases with one path; 1 if 0.
	ParallelRequests int
	// MaxRetryWait bounds every wait and overrides Retry-After; 0 obeys Retry-After.
	MaxRetryWait time.Duration
	// NotStartedRetry is the pause after NOT_STARTED; 0 takes that answer as final.
	NotStartedRetry time.Duration
	// Due is the planned start, from which all times count. Zero is the moment of Buy.
	Due time.Time
	// Room makes the buyer wait in the line of the sale before it buys; nil for a sale without one.
	Room *Room
	// OnCall receives each finished call, OnPath each random path. Both may be nil.
	// The goroutines of the calls run them, so they must be safe for concurrent use.
	OnCall func(Call)
	OnPath func(path string)
}

// Step names the purpose of a call.
type Step string

// The steps of a purchase.
const (
	StepPath  Step = "path"  // POST /randomPath
	StepBuy   Step = "buy"   // POST /{randomPath}/decrStock
	StepOrder Step = "order" // GET /orders/{orderSn}
)

// Call is one finished call. Err is set if no answer arrived or the answer was unreadable.
type Call struct {
	Step   Step
	Answer apiclient.Answer
	Err    error
	Took   time.Duration // since the planned time of the call
}

// Buy runs one purchase: random path, purchase, then polling until the order is written.
// An error means that a call failed and RetryErrors is off, or that ctx ended.
func (b Buyer) Buy(ctx context.Context) (Result, error) {
	began := time.Now()
	if !b.Due.IsZero() {
		began = b.Due
	}
	t := Result{BuyerID: b.ID, Quantity: b.Quantity, Started: began, due: b.Due}
	if b.Room != nil {
		err := b.buyInTurn(ctx, &t)
		return t, err
	}
	err := b.purchase(ctx, &t, began.Add(b.Patience))
	t.DecisionTime = time.Since(began)
	if err == nil && t.Outcome == Won && b.BuysAgain {
		err = b.buyAgain(ctx, &t, time.Now().Add(b.Patience))
	}
	if err == nil && t.Outcome == Won {
		err = b.pollOrder(ctx, &t, time.Now().Add(b.Patience))
		t.WriteTime = time.Since(began) - t.DecisionTime
	}
	return t, err
}

// buyAgain tries a second purchase. The result keeps the first order, which is the one polled.
func (b Buyer) buyAgain(ctx context.Context, t *Result, until time.Time) error {
	first := *t
	b.OnAccepted, b.Repeats = nil, 0
	_, err := b.purchaseOnce(ctx, t, until)
	t.Outcome, t.Reason, t.OrderSn = first.Outcome, first.Reason, first.OrderSn
	return err
}

// purchase repeats purchaseOnce while the path is invalid and the buyer retries errors. A path is
// valid for a minute, so a buyer who waited longer needs a new one.
func (b Buyer) purchase(ctx context.Context, t *Result, until time.Time) error {
	for {
		badPath, err := b.purchaseOnce(ctx, t, until)
		if err != nil || !badPath || !b.RetryErrors || time.Now().After(until) {
			return err
		}
	}
}

// purchaseOnce gets a path and buys with it. It reports whether the API answered BAD_PATH.
func (b Buyer) purchaseOnce(
	ctx context.Context, t *Result, until time.Time,
) (badPath bool, err error) {
	a, err := b.CallWithRetry(ctx, t, until, StepPath, "/randomPath?goodsId="+b.GoodsID)
	if err != nil || a.Status != http.StatusOK {
		t.finish(a)
		return false, err
	}
	var path struct {
		RandomPath string `json:"randomPath"`
	}
	if err := a.Into(&path); err != nil {
		return false, err
	}
	t.Paths++
	if b.OnPath != nil {
		b.OnPath(path.RandomPath)
	}
	a, err = b.buyParallel(ctx, t, until, path.RandomPath)
	if err != nil || a.Status != http.StatusAccepted {
		t.finish(a)
		return a.Reason == "BAD_PATH", err
	}
	t.Outcome, t.Reason, t.OrderSn = Won, a.Reason, t.Accepted[len(t.Accepted)-1].OrderSn
	if b.OnAccepted != nil {
		b.OnAccepted()
	}
	for range b.Repeats {
		if _, err := b.buyWith(ctx, t, until, path.RandomPath); err != nil {
			return false, err
		}
	}
	return false, nil
}

// buyParallel sends ParallelRequests purchases with one path. It returns the first 202 among the
// answers, else the answer of its own request.
func (b Buyer) buyParallel(
	ctx context.Context, t *Result, until time.Time, path string,
) (apiclient.Answer, error) {
	n := max(1, b.ParallelRequests) - 1
	others, answers := make([]Result, n), make([]apiclient.Answer, n)
	var g errgroup.Group
	for i := range others {
		g.Go(func() (err error) {
			answers[i], err = b.buyWith(ctx, &others[i], until, path)
			return err
		})
	}
	a, err := b.buyWith(ctx, t, until, path)
	other := g.Wait()
	for i := range others {
		t.add(others[i])
		if answers[i].Status == http.StatusAccepted && a.Status != http.StatusAccepted {
			a, err = answers[i], nil
		}
	}
	if err == nil && a.Status != http.StatusAccepted {
		err = other
	}
	return a, err
}

// buyWith buys with a path and records the order number of a 202. A failed attempt that met an
// error or a 503 leaves the result uncertain: the API may have accepted a call whose answer was
// lost.
func (b Buyer) buyWith(
	ctx context.Context, t *Result, until time.Time, path string,
) (apiclient.Answer, error) {
	sent, failures := time.Now(), t.failures
	target := fmt.Sprintf("/%s/decrStock?goodsId=%s&decrStock=%d", path, b.GoodsID, b.Quantity)
	a, err := b.CallWithRetry(ctx, t, until, StepBuy, target)
	if err != nil || a.Status != http.StatusAccepted {
		t.Uncertain = t.Uncertain || err != nil || a.Status == 0 || t.failures > failures
		return a, err
	}
	var queued struct {
		OrderSn string `json:"orderSn"`
	}
	err = a.Into(&queued)
	t.Accepted = append(t.Accepted,
		Accepted{Path: path, OrderSn: queued.OrderSn, Sent: sent, Received: time.Now()})
	return a, err
}
