package order

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// drain brings everything reserved before now into MySQL. The token has been taken: an epoch that an earlier rebuild, or
// the first exposing, has begun by now is the one in MySQL, and its load is fenced off with the gate.
func (r *Rebuilder) drain(ctx context.Context, goodsID, token int64) error {
	sale, err := r.store.Sale(ctx, goodsID)
	if err != nil {
		return fmt.Errorf("read the sale: %w", err)
	}
	if err := r.gate.Shut(ctx, goodsID, sale.Epoch); err != nil {
		return err
	}
	sleep(ctx, r.deadline) // whoever reserved before has published by then, or left it to the outbox
	if _, err := r.relay.Drain(ctx, goodsID, 0); err != nil {
		return fmt.Errorf("drain the outbox: %w", err)
	}
	if _, err := r.relay.Feed(ctx, goodsID, time.Now().Add(time.Hour)); err != nil {
		return fmt.Errorf("publish what is pending: %w", err)
	}
	if err := r.passBarrier(ctx, goodsID, Barrier{Epoch: sale.Epoch, Token: token}); err != nil {
		return err
	}
	return r.allWritten(ctx, goodsID)
}

// allWritten looks every pending number up in MySQL: a broker that lost its data between the feeding and the barrier
// would have the barrier come through without them.
func (r *Rebuilder) allWritten(ctx context.Context, goodsID int64) error {
	for cursor := uint64(0); ; {
		page, next, err := r.relay.outbox.PendingPage(ctx, goodsID, cursor, auditChunk)
		if err != nil {
			return fmt.Errorf("look through what is pending: %w", err)
		}
		sns := make([]string, len(page))
		for i, p := range page {
			sns[i] = p.OrderSn
		}
		rows, err := r.store.StatusOf(ctx, goodsID, sns)
		if err != nil {
			return fmt.Errorf("look pending orders up: %w", err)
		}
		for _, sn := range sns {
			if _, written := rows[sn]; !written {
				return fmt.Errorf("order %s is not written though the barrier has passed: the queue lost it", sn)
			}
		}
		if cursor = next; next == 0 {
			return nil
		}
	}
}

// passBarrier sends a barrier and waits until the consumer has committed everything before it.
func (r *Rebuilder) passBarrier(ctx context.Context, goodsID int64, b Barrier) error {
	body, err := EncodeBarrier(goodsID, b)
	if err != nil {
		return fmt.Errorf("encode a barrier: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, barrierLife)
	defer cancel()
	if err := r.publisher.Publish(ctx, goodsID, body); err != nil {
		return fmt.Errorf("send the barrier: %w", err)
	}
	for {
		reached, err := r.store.BarrierReached(ctx, goodsID, b.Epoch, b.Token)
		if err == nil && reached {
			return nil
		}
		sleep(ctx, barrierPoll)
		if ctx.Err() != nil {
			return fmt.Errorf("wait for the barrier: %w", errors.Join(context.Cause(ctx), err))
		}
	}
}
