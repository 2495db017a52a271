package order

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"flashsale.dev/seckill/internal/ordersn"
	"flashsale.dev/seckill/internal/seckill"
)

// LetterStore is MySQL as the resolving of dead letters needs it.
type LetterStore interface {
	// DeadLetters lists letters, oldest first, after an id ("": from the oldest).
	DeadLetters(ctx context.Context, after string, limit int) ([]DeadLetter, error)
	// DeadLetter finds one; ErrNoSuchDeadLetter.
	DeadLetter(ctx context.Context, id string) (DeadLetter, error)
	RemoveDeadLetter(ctx context.Context, id string) error
	// MovesOfOrder lists an order's moves that nobody has marked as given.
	MovesOfOrder(ctx context.Context, goodsID int64, orderSn string) ([]Move, error)
	// PlanReturn writes the move that gives an order's units back at a moment to come, unless Revive removes it before.
	PlanReturn(ctx context.Context, goodsID int64, l seckill.Line, at time.Time) (Move, error)
	// Revive makes a failed order created, once, and removes its letter and the planned return; Conflict where the
	// database has no room for it, ErrTryAgain where the epoch is another than the return's.
	Revive(ctx context.Context, letterID string, undo Move, now, payBy time.Time) (Order, error)
}

// LetterShelf is Redis as the resolving of dead letters needs it.
type LetterShelf interface {
	View(ctx context.Context, goodsID int64) (seckill.View, error)
	Settler
}

// Coroner resolves dead letters for operators.
type Coroner struct {
	store   LetterStore
	shelf   LetterShelf
	giver   *Giver
	minter  *ordersn.Minter
	timeout time.Duration // until an unpaid order expires
	now     func() time.Time
	log     *slog.Logger
}

// NewCoroner makes a coroner. paymentTimeout is how long an order may stay unpaid.
func NewCoroner(store LetterStore, shelf LetterShelf, giver *Giver, minter *ordersn.Minter, paymentTimeout time.Duration, log *slog.Logger) *Coroner {
	return &Coroner{store: store, shelf: shelf, giver: giver, minter: minter, timeout: paymentTimeout, now: time.Now, log: log}
}

const (
	// requeueTime is how long a requeue may take; returnAfter is when units that it took and did not write go back by
	// themselves. The one must be well below the other, clocks that differ included.
	requeueTime = 5 * time.Second
	returnAfter = time.Minute
)

// List pages through dead letters, oldest first.
func (c *Coroner) List(ctx context.Context, after string, limit int) ([]DeadLetter, error) {
	letters, err := c.store.DeadLetters(ctx, after, limit)
	return letters, letterTrouble(err)
}

// Discard forgets a letter; its order stays failed.
func (c *Coroner) Discard(ctx context.Context, id string) error {
	return letterTrouble(c.store.RemoveDeadLetter(ctx, id))
}

// Requeue takes a failed order's units anew and writes it as created. Conflict where nothing is left for it, where the
// buyer has bought otherwise in between, or where the letter holds no order of ours. It writes once, however often and
// by how many it is asked; a crash on the way leaves a move that gives back what was taken (ADR 0031).
func (c *Coroner) Requeue(ctx context.Context, id string) (Order, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), requeueTime)
	defer cancel()
	letter, err := c.store.DeadLetter(ctx, id)
	if err != nil {
		return Order{}, letterTrouble(err)
	}
	line, err := c.lineOf(letter)
	if err != nil {
		return Order{}, err
	}
	if err := c.giveFirst(ctx, letter); err != nil {
		return Order{}, letterTrouble(err)
	}
	o, err := c.revive(ctx, letter, line)
	if err != nil {
		return o, letterTrouble(err)
	}
	c.log.InfoContext(ctx, "dead letter requeued", "goods_id", o.GoodsID, "order_sn", o.OrderSn)
	return o, nil
}

// lineOf reads the one order of a letter.
func (c *Coroner) lineOf(d DeadLetter) (seckill.Line, error) {
	none := seckill.Refuse(seckill.Conflict, "this dead letter holds no order that could be written; it can only be discarded")
	n, err := c.minter.Parse(d.OrderSn)
	if err != nil || n.GoodsID != d.GoodsID {
		return seckill.Line{}, none
	}
	m, err := Decode(d.Body)
	if err != nil || m.GoodsID != d.GoodsID {
		return seckill.Line{}, none
	}
	for _, l := range m.Orders {
		if l.OrderSn == d.OrderSn && checkLine(l) == nil {
			return l, nil
		}
	}
	return seckill.Line{}, none
}

// giveFirst sees to it that what the failed order took is back in Redis before it is taken anew: given later, the move
// would take the new units for the old ones. A return that is planned for later is another's, who is reviving the order.
func (c *Coroner) giveFirst(ctx context.Context, d DeadLetter) error {
	for range 2 {
		moves, err := c.store.MovesOfOrder(ctx, d.GoodsID, d.OrderSn)
		if err != nil || len(moves) == 0 {
			return err
		}
		c.giver.Give(ctx, slices.DeleteFunc(moves, func(m Move) bool { return m.MadeAt.After(c.now()) }))
	}
	return seckill.Down("the order's units are on their way back or being taken anew", nil)
}

func (c *Coroner) revive(ctx context.Context, d DeadLetter, l seckill.Line) (Order, error) {
	now := c.now()
	undo, err := c.store.PlanReturn(ctx, d.GoodsID, l, now.Add(returnAfter))
	if err != nil {
		return Order{}, err
	}
	adopted, err := c.shelf.Adopt(ctx, d.GoodsID, undo.Epoch, 0, []seckill.Line{l}) // MySQL judges the limit
	if _, shut := errors.AsType[*seckill.GateError](err); shut {
		return Order{}, seckill.Rebuilding(err)
	}
	if err != nil {
		return Order{}, err
	}
	if !adopted[l.OrderSn] {
		c.giver.Give(ctx, []Move{undo}) // it took nothing and gives nothing back
		return Order{}, c.nothingLeft(ctx, d.GoodsID)
	}
	o, err := c.store.Revive(ctx, d.ID, undo, now, now.Add(c.timeout))
	if err == nil {
		_, settle := c.shelf.Settle(ctx, d.GoodsID, []string{l.OrderSn})
		if settle != nil {
			c.log.WarnContext(ctx, "not settled, the reconciler will", "goods_id", d.GoodsID, "order_sn", l.OrderSn, "err", settle)
		}
		return o, nil
	}
	if seckill.ReasonOf(err) != "" { // it is known not to be written: what was taken goes back at once
		c.giver.Give(ctx, []Move{undo})
	}
	return o, err
}

func (c *Coroner) nothingLeft(ctx context.Context, goodsID int64) error {
	e := seckill.Refuse(seckill.Conflict, "there is no room for this order: too few units are left, or the buyer has bought otherwise")
	if v, err := c.shelf.View(ctx, goodsID); err == nil {
		e.Data = map[string]any{"available": v.Available}
	}
	return e
}

func letterTrouble(err error) error {
	switch {
	case err == nil || seckill.ReasonOf(err) != "":
		return err
	case errors.Is(err, ErrNoSuchDeadLetter):
		return seckill.Refuse(seckill.NotFound, "there is no such dead letter, or no longer")
	case errors.Is(err, seckill.ErrNoSuchGoods), errors.Is(err, ErrNoSuchOrder):
		return seckill.Refuse(seckill.Conflict, "this dead letter's sale or order does not exist; it can only be discarded")
	default:
		return seckill.Down("the dead letters can't be reached, or the outcome is unknown", err)
	}
}
