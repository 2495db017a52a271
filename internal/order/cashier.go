package order

import (
	"context"
	"errors"
	"time"

	"flashsale.dev/seckill/internal/seckill"
)

// PaymentStore is MySQL as paying and cancelling need it. Both are content with an order that is already there where it
// is to go, and refuse any other with a Conflict.
type PaymentStore interface {
	Pay(ctx context.Context, goodsID int64, orderSn string, now time.Time) (Order, error)
	// Cancel also returns the move that gives the units back; nil where the order was cancelled before.
	Cancel(ctx context.Context, goodsID int64, orderSn string, now time.Time) (Order, *Move, error)
}

// Cashier takes payments and cancellations of the buyer's own orders.
type Cashier struct {
	finder *Finder
	store  PaymentStore
	giver  *Giver
	now    func() time.Time
}

// NewCashier makes a cashier.
func NewCashier(finder *Finder, store PaymentStore, giver *Giver) *Cashier {
	return &Cashier{finder: finder, store: store, giver: giver, now: time.Now}
}

// Pay makes a created order paid. Again: the same state. Still queued: Conflict, to be asked again in a second.
func (c *Cashier) Pay(ctx context.Context, by seckill.Actor, orderSn string) (Order, error) {
	goodsID, err := c.own(ctx, by, orderSn)
	if err != nil {
		return Order{}, err
	}
	o, err := c.store.Pay(ctx, goodsID, orderSn, c.now())
	return o, changed(err)
}

// Cancel makes a created order cancelled; its units go back on sale, once. Again: the same state.
func (c *Cashier) Cancel(ctx context.Context, by seckill.Actor, orderSn string) (Order, error) {
	goodsID, err := c.own(ctx, by, orderSn)
	if err != nil {
		return Order{}, err
	}
	o, move, err := c.store.Cancel(ctx, goodsID, orderSn, c.now())
	if err == nil && move != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), redisDeadline)
		defer cancel()
		c.giver.Give(ctx, []Move{*move})
	}
	return o, changed(err)
}

// own finds the actor's order and says no while it is queued.
func (c *Cashier) own(ctx context.Context, by seckill.Actor, orderSn string) (int64, error) {
	o, err := c.finder.Find(ctx, by, orderSn)
	if err != nil {
		return 0, err
	}
	if o.Status == Queued {
		e := seckill.Refuse(seckill.Conflict, "the order is still on its way; ask again in a second")
		e.RetryAfter = time.Second
		return 0, e
	}
	return o.GoodsID, nil
}

func changed(err error) error {
	switch {
	case err == nil || seckill.ReasonOf(err) != "":
		return err
	case errors.Is(err, ErrNoSuchOrder):
		return noSuchOrder()
	default:
		return seckill.Down("the order could not be changed; the outcome is unknown", err)
	}
}
