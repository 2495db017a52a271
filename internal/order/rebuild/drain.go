package rebuild

import (
	"context"
	"errors"
	"fmt"
	"time"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/message"
)

const (
	// maxDrains is how often a sale is drained before missing orders become dead letters. An order
	// that MySQL accepts in no form must not keep a sale shut.
	maxDrains = 3
	// barrierDeadline bounds the wait for the backlog before the barrier. Afterwards the rebuild
	// fails, and a new one begins.
	barrierDeadline = 30 * time.Second
	// A rebuild asks for its barrier again after these times, rarely while many rebuilds wait.
	barrierPoll, maxBarrierPoll = 20 * time.Millisecond, 200 * time.Millisecond

	pendingChunk = 500 // reservations looked up in MySQL at a time
	// originRebuild is the origin of dead letters that a rebuild writes.
	originRebuild = "rebuild"
)

// drain writes everything reserved before now to MySQL and returns the reservations that are still
// missing.
//
// It shuts the gate of every epoch up to the token's, and Redis then refuses to load one of these.
// inRedis is the epoch that Redis had before the token was taken. MySQL may have lost that epoch in
// a failover, so its gate is shut too. A newer epoch belongs to a newer rebuild, which has fenced
// this one: its gate stays open.
func (r *Rebuilder) drain(
	ctx context.Context, result *Result, token Token, inRedis int64,
) ([]order.Pending, error) {
	goodsID := result.GoodsID
	if token.Retired {
		return nil, ErrRetired
	}
	result.Was = token.Epoch
	lease, err := r.Redis.Shut(ctx, goodsID, max(token.Epoch, inRedis))
	if err != nil {
		return nil, err
	}
	if err := r.endOpening(ctx, goodsID, token, lease); err != nil {
		return nil, err
	}
	// Purchases reserved before the gate was shut publish within this time or leave their outbox
	// entry to the relay.
	if err := r.slots.sleep(ctx, goodsID, r.PublishTimeout); err != nil {
		return nil, err
	}
	relayed, err := r.Outbox.PublishUnconfirmed(ctx, goodsID, 0)
	if result.Relayed += relayed; err != nil {
		return nil, fmt.Errorf("publish the outbox: %w", err)
	}
	if _, err := r.Outbox.PublishPending(ctx, goodsID); err != nil {
		return nil, fmt.Errorf("publish pending reservations: %w", err)
	}
	barrier := message.Barrier{Epoch: token.Epoch, Token: token.Number}
	if err := r.passBarrier(ctx, goodsID, barrier); err != nil {
		return nil, err
	}
	return r.findMissing(ctx, result)
}

// errBacklog means that the barrier has not passed through the queue within barrierDeadline. The
// next rebuild sends another one.
var errBacklog = errors.New("the consumers have not written the orders before it within " +
	barrierDeadline.String())

// passBarrier sends a barrier and waits until the batch writer has committed everything before it.
func (r *Rebuilder) passBarrier(ctx context.Context, goodsID int64, b message.Barrier) error {
	body, err := message.EncodeBarrier(goodsID, b)
	if err != nil {
		return fmt.Errorf("encode a barrier: %w", err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, barrierDeadline, errBacklog)
	defer cancel()
	if err := r.Queue.Publish(ctx, goodsID, body); err != nil {
		return fmt.Errorf("send the barrier: %w", err)
	}
	for poll := barrierPoll; ; poll = min(2*poll, maxBarrierPoll) {
		reached, err := r.Store.BarrierReached(ctx, goodsID, b.Epoch, b.Token)
		if err == nil && reached {
			return nil
		}
		if r.slots.sleep(ctx, goodsID, poll) != nil {
			err = errors.Join(context.Cause(ctx), err)
			return fmt.Errorf("wait for the barrier: %w", err)
		}
	}
}

// findMissing searches MySQL for every pending reservation. Some can be missing after the barrier:
// the broker may have lost its data before the barrier arrived, or MySQL refused the order.
func (r *Rebuilder) findMissing(ctx context.Context, result *Result) ([]order.Pending, error) {
	var missing []order.Pending
	result.Found = 0
	for page, err := range r.Redis.PendingPages(ctx, result.GoodsID, pendingChunk) {
		if err != nil {
			return nil, fmt.Errorf("read pending reservations: %w", err)
		}
		rows, err := r.Store.StatusOf(ctx, result.GoodsID, order.Numbers(page))
		if err != nil {
			return nil, fmt.Errorf("look up pending orders: %w", err)
		}
		for _, p := range page {
			if _, written := rows[p.OrderSn]; written {
				result.Found++
			} else {
				missing = append(missing, p)
			}
		}
	}
	return missing, nil
}

// deadLetterMissing ends orders that are still missing after all drains. It writes each as failed
// if MySQL accepts that, and stores a dead letter in any case. After an infrastructure error, which
// it returns, the gate stays shut and the next rebuild starts again. It writes nothing if a newer
// rebuild has begun: this one has slept, and the orders may be on their way in a newer epoch.
func (r *Rebuilder) deadLetterMissing(
	ctx context.Context, result *Result, token int64, missing []order.Pending,
) error {
	now, err := r.Store.Now(ctx)
	if err != nil {
		return fmt.Errorf("read the database's clock: %w", err)
	}
	for _, p := range missing {
		lines := message.JoinEntries([][]byte{p.Entry})
		d := order.DeadLetter{
			GoodsID: result.GoodsID, OrderSn: p.OrderSn, Reason: order.FailedUnwritten,
			Attempts: maxDrains, FirstSeenAt: p.At, Origin: originRebuild,
			Body: message.EncodeOrders(result.GoodsID, lines),
		}
		err := r.Store.WriteMissing(ctx, token, p.OrderLine, d, now)
		if err != nil && !errors.Is(err, order.ErrTryAgain) && !errors.Is(err, ErrFenced) {
			d.ID = order.DeadLetterID(p.OrderSn)
			err = r.Store.AddDeadLetter(ctx, d)
		}
		if err != nil {
			return fmt.Errorf("write a dead letter of order %s: %w", p.OrderSn, err)
		}
		result.Lost++
		r.Log.ErrorContext(ctx, "an order cannot be written, it is a dead letter now",
			"goods_id", result.GoodsID, "order_sn", p.OrderSn)
	}
	return nil
}
