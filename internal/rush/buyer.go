package rush

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

// Outcome is how a buyer's try ended.
type Outcome string

// The ends of a try.
const (
	Won     Outcome = "won"      // 202: there is an order
	SoldOut Outcome = "sold out" // politely told that nothing is left
	Refused Outcome = "refused"  // any other refusal that is final (LIMIT_REACHED, ENDED)
	GaveUp  Outcome = "gave up"  // limited or unavailable for longer than the buyer had patience
)

// Told is what one buyer was told.
type Told struct {
	BuyerID  int64
	Outcome  Outcome
	Reason   string // of the last answer
	OrderSn  string // Won
	Status   string // Won: the order's status when the buyer stopped looking
	Quantity int64
	Limited  int // how often the answer was 429
	Faults   int // how often it was a 5xx other than 503
	Busy     int // how often it was 503
	// Bought is the time from the first call to the 202 or the refusal; Written from there until the order was written.
	Bought, Written time.Duration
}

// Buyer is one who tries to buy.
type Buyer struct {
	Client
	ID       int64
	GoodsID  string
	Quantity int64
	Patience time.Duration // how long it goes on when told to come again
}

// Buy goes the whole way once: path, purchase, and the order until it is written.
func (b Buyer) Buy(ctx context.Context) (Told, error) {
	t := Told{BuyerID: b.ID, Quantity: b.Quantity}
	began := time.Now()
	err := b.purchase(ctx, &t, began.Add(b.Patience))
	t.Bought = time.Since(began)
	if err == nil && t.Outcome == Won {
		err = b.watch(ctx, &t, time.Now().Add(b.Patience))
		t.Written = time.Since(began) - t.Bought
	}
	return t, err
}

func (b Buyer) purchase(ctx context.Context, t *Told, until time.Time) error {
	a, err := b.insist(ctx, t, until, http.MethodPost, "/randomPath?goodsId="+b.GoodsID)
	if err != nil || a.Status != http.StatusOK {
		t.end(a)
		return err
	}
	var path struct {
		RandomPath string `json:"randomPath"`
	}
	if err := a.Into(&path); err != nil {
		return err
	}
	a, err = b.insist(ctx, t, until, http.MethodPost,
		fmt.Sprintf("/%s/decrStock?goodsId=%s&decrStock=%d", path.RandomPath, b.GoodsID, b.Quantity))
	if err != nil || a.Status != http.StatusAccepted {
		t.end(a)
		return err
	}
	var queued struct {
		OrderSn string `json:"orderSn"`
	}
	err = a.Into(&queued)
	t.Outcome, t.Reason, t.OrderSn = Won, a.Reason, queued.OrderSn
	return err
}

// insist makes a call again while the answer is "later" and patience lasts. Asking again is safe: the contract says so.
func (b Buyer) insist(ctx context.Context, t *Told, until time.Time, method, path string) (Answer, error) {
	for {
		a, err := b.Call(ctx, method, path, nil)
		if err != nil {
			return a, err
		}
		switch {
		case a.Status == http.StatusTooManyRequests:
			t.Limited++
		case a.Status == http.StatusServiceUnavailable:
			t.Busy++
		case a.Status >= 500:
			t.Faults++
			return a, nil
		default:
			return a, nil
		}
		if time.Now().After(until) {
			return a, nil
		}
		select {
		case <-time.After(a.RetryAfter):
		case <-ctx.Done():
			return a, ctx.Err()
		}
	}
}

func (t *Told) end(a Answer) {
	t.Reason = a.Reason
	switch {
	case a.Reason == "SOLD_OUT":
		t.Outcome = SoldOut
	case a.Status == http.StatusTooManyRequests || a.Status == http.StatusServiceUnavailable:
		t.Outcome = GaveUp
	default:
		t.Outcome = Refused
	}
}

// watch looks at the order until it is written, each time after a longer pause.
func (b Buyer) watch(ctx context.Context, t *Told, until time.Time) error {
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, 500*time.Millisecond) {
		a, err := b.insist(ctx, t, until, http.MethodGet, "/orders/"+t.OrderSn)
		if err != nil {
			return err
		}
		var order struct {
			Status string `json:"status"`
		}
		if err := a.Into(&order); err != nil {
			return err
		}
		if t.Status = order.Status; t.Status != "queued" || time.Now().After(until) {
			return nil
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
