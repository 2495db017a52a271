package deadletter

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/inventory"
	"flashsale.dev/seckill/internal/order/orderwriter"
	"flashsale.dev/seckill/internal/ordersn"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/reservation"
)

// Store is MySQL as the resolving of dead letters needs it.
type Store interface {
	// DeadLetters lists letters, oldest first, after an id ("": from the oldest).
	DeadLetters(ctx context.Context, after string, limit int) ([]order.DeadLetter, error)
	// DeadLetter finds one; ErrNoSuchDeadLetter.
	DeadLetter(ctx context.Context, id string) (order.DeadLetter, error)
	RemoveDeadLetter(ctx context.Context, id string) error
	// MovesOfOrder lists an order's moves that nobody has marked as given.
	MovesOfOrder(ctx context.Context, goodsID int64, orderSn string) ([]order.StockMove, error)
	// PlanReturn writes the move that gives an order's units back at a moment to come, unless Revive removes it before.
	ScheduleRelease(ctx context.Context, goodsID int64, l reservation.OrderLine, at time.Time) (order.StockMove, error)
	// Revive makes a failed order created, once, and removes its letter and the planned return; Conflict where the
	// database has no room for it, ErrTryAgain where the epoch is another than the return's.
	RestoreOrder(ctx context.Context, letterID string, undo order.StockMove, now, payBy time.Time) (order.Order, error)
}

// ReservationStore is Redis as the resolving of dead letters needs it.
type ReservationStore interface {
	View(ctx context.Context, goodsID int64) (seckill.View, error)
	orderwriter.Settler
}

// Service resolves dead letters for operators.
type Service struct {
	store    Store
	redis    ReservationStore
	releaser *inventory.StockReleaser
	minter   *ordersn.Minter
	timeout  time.Duration // until an unpaid order expires
	now      func() time.Time
	log      *slog.Logger
}

// NewService makes a coroner. paymentTimeout is how long an order may stay unpaid.
func NewService(store Store, shelf ReservationStore, giver *inventory.StockReleaser, minter *ordersn.Minter, paymentTimeout time.Duration, log *slog.Logger) *Service {
	return &Service{store: store, redis: shelf, releaser: giver, minter: minter, timeout: paymentTimeout, now: time.Now, log: log}
}

const (
	// requeueDeadline is how long a requeue may take; returnAfter is when units that it took and did not write go back by
	// themselves. The one must be well below the other, clocks that differ included.
	requeueDeadline = 5 * time.Second
	returnAfter     = time.Minute
)

// List pages through dead letters, oldest first.
func (c *Service) List(ctx context.Context, after string, limit int) ([]order.DeadLetter, error) {
	letters, err := c.store.DeadLetters(ctx, after, limit)
	return letters, storeError(err)
}

// Discard forgets a letter; its order stays failed.
func (c *Service) Discard(ctx context.Context, id string) error {
	return storeError(c.store.RemoveDeadLetter(ctx, id))
}

// Requeue takes a failed order's units anew and writes it as created. Conflict where nothing is left for it, where the
// buyer has bought otherwise in between, or where the letter holds no order of ours. It writes once, however often and
// by how many it is asked; a crash on the way leaves a move that gives back what was taken (ADR 0031).
func (c *Service) Requeue(ctx context.Context, id string) (order.Order, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), requeueDeadline)
	defer cancel()
	letter, err := c.store.DeadLetter(ctx, id)
	if err != nil {
		return order.Order{}, storeError(err)
	}
	line, err := c.lineOf(letter)
	if err != nil {
		return order.Order{}, err
	}
	if err := c.releaseFirst(ctx, letter); err != nil {
		return order.Order{}, storeError(err)
	}
	o, err := c.revive(ctx, letter, line)
	if err != nil {
		return o, storeError(err)
	}
	c.log.InfoContext(ctx, "dead letter requeued", "goods_id", o.GoodsID, "order_sn", o.OrderSn)
	return o, nil
}

// lineOf reads the one order of a letter.
func (c *Service) lineOf(d order.DeadLetter) (reservation.OrderLine, error) {
	none := seckill.NewError(seckill.Conflict, "this dead letter holds no order that could be written; it can only be discarded")
	n, err := c.minter.Parse(d.OrderSn)
	if err != nil || n.GoodsID != d.GoodsID {
		return reservation.OrderLine{}, none
	}
	m, err := order.Decode(d.Body)
	if err != nil || m.GoodsID != d.GoodsID {
		return reservation.OrderLine{}, none
	}
	for _, l := range m.Orders {
		if l.OrderSn == d.OrderSn && order.CheckLine(l) == nil {
			return l, nil
		}
	}
	return reservation.OrderLine{}, none
}

// giveFirst sees to it that what the failed order took is back in Redis before it is taken anew: given later, the move
// would take the new units for the old ones. A return that is planned for later is another's, who is reviving the order.
func (c *Service) releaseFirst(ctx context.Context, d order.DeadLetter) error {
	for range 2 {
		moves, err := c.store.MovesOfOrder(ctx, d.GoodsID, d.OrderSn)
		if err != nil || len(moves) == 0 {
			return err
		}
		c.releaser.Release(ctx, slices.DeleteFunc(moves, func(m order.StockMove) bool { return m.MadeAt.After(c.now()) }))
	}
	return seckill.NewUnavailable("the order's units are on their way back or being taken anew", nil)
}

func (c *Service) revive(ctx context.Context, d order.DeadLetter, l reservation.OrderLine) (order.Order, error) {
	now := c.now()
	undo, err := c.store.ScheduleRelease(ctx, d.GoodsID, l, now.Add(returnAfter))
	if err != nil {
		return order.Order{}, err
	}
	adopted, err := c.redis.Adopt(ctx, d.GoodsID, undo.Epoch, 0, []reservation.OrderLine{l}) // MySQL judges the limit
	if _, shut := errors.AsType[*seckill.GateError](err); shut {
		return order.Order{}, seckill.NewRebuilding(err)
	}
	if err != nil {
		return order.Order{}, err
	}
	if !adopted[l.OrderSn] {
		c.releaser.Release(ctx, []order.StockMove{undo}) // it took nothing and gives nothing back
		return order.Order{}, c.nothingLeft(ctx, d.GoodsID)
	}
	o, err := c.store.RestoreOrder(ctx, d.ID, undo, now, now.Add(c.timeout))
	if err == nil {
		_, settle := c.redis.Settle(ctx, d.GoodsID, []string{l.OrderSn})
		if settle != nil {
			c.log.WarnContext(ctx, "not settled, the reconciler will", "goods_id", d.GoodsID, "order_sn", l.OrderSn, "err", settle)
		}
		return o, nil
	}
	if seckill.ReasonOf(err) != "" { // it is known not to be written: what was taken goes back at once
		c.releaser.Release(ctx, []order.StockMove{undo})
	}
	return o, err
}

func (c *Service) nothingLeft(ctx context.Context, goodsID int64) error {
	e := seckill.NewError(seckill.Conflict, "there is no room for this order: too few units are left, or the buyer has bought otherwise")
	if v, err := c.redis.View(ctx, goodsID); err == nil {
		e.Data = map[string]any{"available": v.Available}
	}
	return e
}

func storeError(err error) error {
	switch {
	case err == nil || seckill.ReasonOf(err) != "":
		return err
	case errors.Is(err, order.ErrNoSuchDeadLetter):
		return seckill.NewError(seckill.NotFound, "there is no such dead letter, or no longer")
	case errors.Is(err, seckill.ErrNoSuchGoods), errors.Is(err, order.ErrNoSuchOrder):
		return seckill.NewError(seckill.Conflict, "this dead letter's sale or order does not exist; it can only be discarded")
	default:
		return seckill.NewUnavailable("the dead letters can't be reached, or the outcome is unknown", err)
	}
}
