package rebuild

import (
	"context"
	"errors"
	"fmt"
	"time"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/reconcile"
	"flashsale.dev/seckill/internal/workers"
)

// drain brings everything reserved before now into MySQL, and returns what is not there even so. The token has been taken:
// an epoch that an earlier rebuild, or the first exposing, has begun by now is the one in MySQL, and its load is fenced off
// with the gate.
func (r *Rebuilder) drain(ctx context.Context, done *Result, token int64) ([]order.Pending, error) {
	sale, err := r.store.Sale(ctx, done.GoodsID)
	if err != nil {
		return nil, fmt.Errorf("read the sale: %w", err)
	}
	if sale.Retired {
		return nil, ErrRetired
	}
	done.Was = sale.Epoch
	if err := r.gate.Shut(ctx, sale.GoodsID, sale.Epoch); err != nil {
		return nil, err
	}
	workers.Sleep(ctx, r.deadline) // whoever reserved before has published by then, or left it to the outbox
	relayed, err := r.relay.Drain(ctx, sale.GoodsID, 0)
	if done.Relayed += relayed; err != nil {
		return nil, fmt.Errorf("drain the outbox: %w", err)
	}
	if _, err := r.relay.Republish(ctx, sale.GoodsID, time.Now().Add(time.Hour)); err != nil {
		return nil, fmt.Errorf("publish what is pending: %w", err)
	}
	if err := r.passBarrier(ctx, sale.GoodsID, order.Barrier{Epoch: sale.Epoch, Token: token}); err != nil {
		return nil, err
	}
	return r.unwritten(ctx, done)
}

// unwritten looks every pending number up in MySQL: a broker that lost its data between the feeding and the barrier
// would have the barrier come through without them, and the consumer may have found no form in which MySQL takes one.
func (r *Rebuilder) unwritten(ctx context.Context, done *Result) ([]order.Pending, error) {
	var missing []order.Pending
	done.Found = 0
	for cursor := uint64(0); ; {
		page, next, err := r.relay.Outbox.PendingPage(ctx, done.GoodsID, cursor, reconcile.PendingChunk)
		if err != nil {
			return nil, fmt.Errorf("look through what is pending: %w", err)
		}
		sns := make([]string, len(page))
		for i, p := range page {
			sns[i] = p.OrderSn
		}
		rows, err := r.store.StatusOf(ctx, done.GoodsID, sns)
		if err != nil {
			return nil, fmt.Errorf("look pending orders up: %w", err)
		}
		for _, p := range page {
			if _, written := rows[p.OrderSn]; written {
				done.Found++
			} else {
				missing = append(missing, p)
			}
		}
		if cursor = next; next == 0 {
			return missing, nil
		}
	}
}

// originRebuild is the origin of a dead letter whose order a rebuild gave up.
const originRebuild = "rebuild"

// giveUp ends orders that were drained again and again and are in no table: failed rows where MySQL takes those, and in any
// case dead letters with what was reserved. The infrastructure's trouble is an error: then the sale stays shut, and
// the next rebuild tries anew.
func (r *Rebuilder) deadLetterMissing(ctx context.Context, done *Result, missing []order.Pending) error {
	now := time.Now().UTC()
	for _, p := range missing {
		d := order.DeadLetter{
			GoodsID: done.GoodsID, OrderSn: p.OrderSn, Reason: order.FailedUnwritten, Attempts: drains,
			FirstSeenAt: p.At, Origin: originRebuild, Body: order.EncodeOrders(done.GoodsID, order.JoinEntries([][]byte{p.Entry})),
		}
		_, err := r.store.WriteFailed(ctx, done.GoodsID, p.OrderLine, done.Was, order.FailedUnwritten, d, now)
		if err != nil && !errors.Is(err, order.ErrTryAgain) {
			d.ID = order.DeadLetterID(p.OrderSn)
			err = r.store.AddDeadLetter(ctx, d)
		}
		if err != nil {
			return fmt.Errorf("give order %s up: %w", p.OrderSn, err)
		}
		done.Lost++
		r.log.ErrorContext(ctx, "an order can be written in no form, a dead letter keeps it", "goods_id", done.GoodsID, "order_sn", p.OrderSn)
	}
	return nil
}

// passBarrier sends a barrier and waits until the consumer has committed everything before it.
func (r *Rebuilder) passBarrier(ctx context.Context, goodsID int64, b order.Barrier) error {
	body, err := order.EncodeBarrier(goodsID, b)
	if err != nil {
		return fmt.Errorf("encode a barrier: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, barrierDeadline)
	defer cancel()
	if err := r.publisher.Publish(ctx, goodsID, body); err != nil {
		return fmt.Errorf("send the barrier: %w", err)
	}
	for {
		reached, err := r.store.BarrierReached(ctx, goodsID, b.Epoch, b.Token)
		if err == nil && reached {
			return nil
		}
		workers.Sleep(ctx, barrierPoll)
		if ctx.Err() != nil {
			return fmt.Errorf("wait for the barrier: %w", errors.Join(context.Cause(ctx), err))
		}
	}
}
