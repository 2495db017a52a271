package rush

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

// Buyer is one who tries to buy.
type Buyer struct {
	Client
	ID       int64
	GoodsID  string
	Quantity int64
	Patience time.Duration // how long it goes on when told to come again
	// Stubborn buyers ask again, with the same path, when a connection breaks, and for a new path where theirs is gone.
	Stubborn bool
	Bases    []string // where a stubborn buyer turns to, one after another
	Again    int      // after a 202 the same path is asked so many times more
	Greedy   bool     // after a 202 it asks for a new path and tries to buy once more
	Cancels  bool     // it cancels what it bought once that is written, twice
	Won      func()   // called at the first 202; may be nil
}

// Buy goes the whole way once: path, purchase, and the order until it is written.
func (b Buyer) Buy(ctx context.Context) (Told, error) {
	t := Told{BuyerID: b.ID, Quantity: b.Quantity}
	began := time.Now()
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
		a, err := b.insist(ctx, t, until, http.MethodPost, "/orders/"+t.OrderSn+"/cancel")
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
	a, err := b.insist(ctx, t, until, http.MethodPost, "/randomPath?goodsId="+b.GoodsID)
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
	a, err = b.buyWith(ctx, t, until, path.RandomPath)
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

// buyWith asks to buy with a path and keeps what a 202 says.
func (b Buyer) buyWith(ctx context.Context, t *Told, until time.Time, path string) (Answer, error) {
	asked := time.Now()
	a, err := b.insist(ctx, t, until, http.MethodPost, fmt.Sprintf("/%s/decrStock?goodsId=%s&decrStock=%d", path, b.GoodsID, b.Quantity))
	if err != nil || a.Status != http.StatusAccepted {
		return a, err
	}
	var queued struct {
		OrderSn string `json:"orderSn"`
	}
	err = a.Into(&queued)
	t.Heard = append(t.Heard, Heard{Path: path, OrderSn: queued.OrderSn, Asked: asked, At: time.Now()})
	return a, err
}

// insist makes a call again while the answer is "later" and patience lasts. Asking again is safe: the contract says so.
func (b Buyer) insist(ctx context.Context, t *Told, until time.Time, method, path string) (Answer, error) {
	for turn := 0; ; turn++ {
		a, err := b.turnTo(turn).Call(ctx, method, path, nil)
		switch {
		case err != nil && b.Stubborn && ctx.Err() == nil && a.Status == 0:
			t.Broken++
			a = Answer{RetryAfter: brokenPause}
		case err != nil:
			return a, err
		case !t.later(a):
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

// brokenPause is how long a stubborn buyer waits after a connection broke.
const brokenPause = 100 * time.Millisecond

// turnTo is the buyer's own API at first, and then each of them in turn.
func (b Buyer) turnTo(turn int) Client {
	c := b.Client
	if b.Stubborn && len(b.Bases) > 0 && turn > 0 {
		c.Base = b.Bases[(int(b.ID)+turn)%len(b.Bases)]
	}
	return c
}

// watch looks at the order until it is written, each time after a longer pause.
func (b Buyer) watch(ctx context.Context, t *Told, until time.Time) error {
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, 500*time.Millisecond) {
		a, err := b.insist(ctx, t, until, http.MethodGet, "/orders/"+t.OrderSn)
		if err != nil || b.Stubborn && (a.Status == 0 || a.Status >= 500) {
			return err // patience has ended: the last status stands
		}
		if b.Stubborn && a.Status >= 400 {
			t.see(a.Reason)
			return nil
		}
		var order struct {
			Status string `json:"status"`
		}
		if err := a.Into(&order); err != nil {
			return err
		}
		t.see(order.Status)
		if t.Status != "queued" || time.Now().After(until) {
			return nil
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
