package deadletter

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"flashsale.dev/seckill/internal/apierror"
	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/inventory"
	"flashsale.dev/seckill/internal/order/message"
	"flashsale.dev/seckill/internal/ordersn"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/reservation"
)

// Store keeps dead letters and failed orders in MySQL.
type Store interface {
	order.Clock
	// Sale reads one sale; seckill.ErrNoSuchGoods if there is none.
	Sale(ctx context.Context, goodsID int64) (seckill.Sale, error)
	// DeadLetters lists dead letters, oldest first, after an id ("": from the oldest).
	DeadLetters(ctx context.Context, after string, limit int) ([]order.DeadLetter, error)
	// DeadLetter reads one; ErrNoSuchDeadLetter if there is none.
	DeadLetter(ctx context.Context, id string) (order.DeadLetter, error)
	// RemoveDeadLetter deletes one for the context's actor; ErrNoSuchDeadLetter if there is none.
	RemoveDeadLetter(ctx context.Context, id string, now time.Time) error
	// MovesOfOrder lists an order's stock moves that are not marked as applied.
	MovesOfOrder(ctx context.Context, goodsID int64, orderSn string) ([]order.StockMove, error)
	// ScheduleRelease writes the stock move that returns a failed order's units at a later moment,
	// unless RestoreOrder removes it before. The error is order.ErrActive for an active order, and
	// Conflict for one that has ended, or whose row has other units.
	ScheduleRelease(
		ctx context.Context, goodsID int64, l reservation.OrderLine, at time.Time,
	) (order.StockMove, error)
	// RestoreOrder makes a failed order created, once, and removes its dead letter and the planned
	// return, for the context's actor. Of an active order it only removes both. Conflict if stock
	// or limit do not allow it, or if the order has ended since; ErrNoSuchDeadLetter if it was
	// discarded; ErrTryAgain if the epoch has changed, or the outcome is unknown.
	RestoreOrder(
		ctx context.Context, deadLetterID string, undo order.StockMove, at order.Times,
	) (order.Order, error)
}

// Redis reserves units for a requeued order.
type Redis interface {
	// View reads the current state of a sale.
	View(ctx context.Context, goodsID int64) (seckill.View, error)
	// Retake takes units of an epoch for a failed order and returns the units that it has now. It
	// refuses an order with which its buyer would hold more than limit units. The error is a
	// *seckill.GateError unless the epoch's gate is open.
	Retake(
		ctx context.Context, goodsID, epoch, limit int64, l reservation.OrderLine,
	) (int64, error)
	// Settle turns pending reservations into sold units and returns how many it changed.
	Settle(ctx context.Context, goodsID int64, sns []string) (int, error)
}

// Service resolves dead letters for operators. It is safe for concurrent use.
type Service struct {
	Store          Store
	Redis          Redis
	Releaser       *inventory.StockReleaser
	Keys           *ordersn.Keys
	PaymentTimeout time.Duration // until a requeued order expires
	Log            *slog.Logger
}

// requeueDeadline bounds a requeue. It is below order.ReturnAfter.
const requeueDeadline = 5 * time.Second

// List lists dead letters after an id ("": from the oldest), oldest first.
func (s *Service) List(ctx context.Context, after string, limit int) ([]order.DeadLetter, error) {
	deadLetters, err := s.Store.DeadLetters(ctx, after, limit)
	return deadLetters, storeError(err)
}

// Find returns a dead letter, or the error NotFound.
func (s *Service) Find(ctx context.Context, id string) (order.DeadLetter, error) {
	found, err := s.Store.DeadLetter(ctx, id)
	return found, storeError(err)
}

// Discard deletes a dead letter for an operator. The order keeps the status failed.
func (s *Service) Discard(ctx context.Context, by seckill.Actor, id string) error {
	now, err := s.Store.Now(ctx)
	if err == nil {
		err = s.Store.RemoveDeadLetter(seckill.WithActor(ctx, by), id, now)
	}
	return storeError(err)
}

// Requeue reserves a failed order's units again and writes the order as created, for an operator.
// It returns Conflict if too few units are left or the buyer has reached the limit. So it does if
// the order was written and has ended, or the dead letter has no valid order. Concurrent and
// repeated calls write the order once. After a crash the planned return releases the units back
// (ADR 31).
func (s *Service) Requeue(
	ctx context.Context, by seckill.Actor, id string,
) (order.Order, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), requeueDeadline)
	ctx = seckill.WithActor(ctx, by)
	defer cancel()
	deadLetter, err := s.Store.DeadLetter(ctx, id)
	if err != nil {
		return order.Order{}, storeError(err)
	}
	line, err := s.lineOf(deadLetter)
	if err != nil {
		return order.Order{}, err
	}
	sale, err := s.Store.Sale(ctx, deadLetter.GoodsID)
	if err != nil {
		return order.Order{}, storeError(err)
	}
	if err := s.releaseFirst(ctx, deadLetter, sale.Epoch); err != nil {
		return order.Order{}, storeError(err)
	}
	o, err := s.revive(ctx, deadLetter, line, sale)
	if err != nil {
		return o, storeError(err)
	}
	s.Log.InfoContext(ctx, "dead letter requeued", "goods_id", o.GoodsID, "order_sn", o.OrderSn)
	return o, nil
}

// lineOf reads the order of a dead letter.
func (s *Service) lineOf(d order.DeadLetter) (reservation.OrderLine, error) {
	l, readable := d.Line()
	n, err := s.Keys.Verify(l.OrderSn, l.BuyerID)
	if !readable || err != nil || n.GoodsID != d.GoodsID || message.CheckLine(l) != nil {
		return l, apierror.New(apierror.Conflict,
			"this dead letter holds no order that could be written; it can only be discarded")
	}
	return l, nil
}

// releaseFirst applies the stock moves of the failed order before its units are reserved again. A
// move that is applied later would release the new units. releaseFirst skips the planned return of
// another call that requeues the order in the present epoch. A planned return of an older epoch is
// applied too: its call can take no more units, because that epoch's gate is shut for good.
func (s *Service) releaseFirst(ctx context.Context, d order.DeadLetter, epoch int64) error {
	for range 2 {
		moves, err := s.Store.MovesOfOrder(ctx, d.GoodsID, d.OrderSn)
		if err != nil || len(moves) == 0 {
			return err
		}
		now, err := s.Store.Now(ctx)
		if err != nil {
			return err
		}
		planned := func(m order.StockMove) bool {
			return m.MadeAt.After(now) && m.Epoch >= epoch
		}
		s.Releaser.Release(ctx, slices.DeleteFunc(moves, planned))
	}
	return apierror.NewUnavailable("the order's units are on their way back or being taken anew",
		nil)
}

// revive reserves the units in Redis and then restores the order in MySQL. It first plans the
// return of the units, so that a crash between both steps leaks none. For an active order, which
// another call has restored, it plans none: the units may be pending, and a return would sell them
// twice.
func (s *Service) revive(
	ctx context.Context, d order.DeadLetter, l reservation.OrderLine, sale seckill.Sale,
) (order.Order, error) {
	at, err := order.ReadTimes(ctx, s.Store, s.PaymentTimeout)
	if err != nil {
		return order.Order{}, err
	}
	undo, err := s.Store.ScheduleRelease(ctx, d.GoodsID, l, at.Now.Add(order.ReturnAfter))
	if errors.Is(err, order.ErrActive) {
		none := order.StockMove{GoodsID: d.GoodsID, OrderSn: l.OrderSn}
		return s.Store.RestoreOrder(ctx, d.ID, none, at)
	}
	if err != nil {
		return order.Order{}, err
	}
	// Redis checks the limit, too: MySQL lacks the buyer's pending orders, and would refuse them.
	units, err := s.Redis.Retake(ctx, d.GoodsID, undo.Epoch, sale.MaxPerBuyerLimit, l)
	if _, shut := errors.AsType[*seckill.GateError](err); shut {
		return order.Order{}, seckill.NewRebuilding(err)
	}
	if err != nil {
		return order.Order{}, err
	}
	switch units {
	case l.Quantity:
	case 0: // Redis took nothing, so this only removes the planned return
		s.Releaser.Release(ctx, []order.StockMove{undo})
		return order.Order{}, s.nothingLeft(ctx, d.GoodsID)
	default: // the buyer has used the path again, and that order is on its way
		return order.Order{}, s.nothingLeft(ctx, d.GoodsID)
	}
	o, err := s.Store.RestoreOrder(ctx, d.ID, undo, at)
	if err == nil {
		if _, err := s.Redis.Settle(ctx, d.GoodsID, []string{l.OrderSn}); err != nil {
			s.Log.WarnContext(ctx, "requeued order not settled, the reconciler will settle it",
				"goods_id", d.GoodsID, "order_sn", l.OrderSn, "err", err)
		}
		return o, nil
	}
	if !errors.Is(err, order.ErrTryAgain) { // nothing was written, so the units return at once
		s.Releaser.Release(ctx, []order.StockMove{undo})
	}
	return o, err
}

// nothingLeft returns the Conflict of a requeue that Redis refused, with the available units if
// Redis replies.
func (s *Service) nothingLeft(ctx context.Context, goodsID int64) error {
	e := apierror.New(apierror.Conflict,
		"Redis has too few units left, or the buyer has reached the sale's highest limit or used "+
			"the path again")
	if v, err := s.Redis.View(ctx, goodsID); err == nil {
		return e.With("available", v.Available)
	}
	return e
}

// storeError maps an error of the store to one that the operator may see.
func storeError(err error) error {
	switch {
	case errors.Is(err, order.ErrNoSuchDeadLetter):
		return apierror.New(apierror.NotFound, "there is no such dead letter, or no longer")
	case errors.Is(err, seckill.ErrNoSuchGoods):
		return apierror.New(apierror.Conflict,
			"this dead letter's sale does not exist; it can only be discarded")
	case errors.Is(err, order.ErrNoSuchOrder):
		return apierror.New(apierror.Conflict,
			"this order was never written; while it is pending, it is published again by itself")
	default:
		return apierror.OrUnavailable(err,
			"the dead letters can't be reached, or the outcome is unknown")
	}
}
