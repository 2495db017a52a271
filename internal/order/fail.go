package order

import (
	"context"
	"time"

	"github.com/google/uuid"

	"flashsale.dev/seckill/internal/ordersn"
)

// fail writes orders as failed, one by one, each with its dead letter, and gives their units back.
func (w *Writer) fail(ctx context.Context, goodsID int64, lines []sourced, reason FailureReason) error {
	for _, l := range lines {
		if err := w.failOne(ctx, goodsID, l, reason); err != nil {
			return err
		}
	}
	return nil
}

// failOne keeps a dead letter without an order where MySQL will not even take the failed row.
func (w *Writer) failOne(ctx context.Context, goodsID int64, l sourced, reason FailureReason) error {
	body, err := EncodeLine(l.Line)
	if err != nil {
		return err
	}
	d := w.dead(goodsID, l.OrderSn, reason, l.delivery, EncodeOrders(goodsID, JoinEntries([][]byte{body})))
	began := time.Now()
	var out Outcome
	err = w.retry(ctx, "write a failed order", func() error {
		var err error
		out, err = w.store.WriteFailed(ctx, goodsID, l.Line, l.epoch, reason, d, w.now())
		return err
	})
	if err != nil && ctx.Err() == nil {
		w.log.ErrorContext(ctx, "failed order can't be written either", "goods_id", goodsID, "order_sn", l.OrderSn, "err", err)
		w.observer.Buried(reason)
		d.ID = letterID(l.OrderSn)
		return w.retry(ctx, "keep a dead letter", func() error { return w.store.AddDeadLetter(ctx, d) })
	}
	if err == nil {
		w.observer.Wrote(out, time.Since(began))
		w.tell(ctx, goodsID, out)
	}
	return err
}

// letterID is the id of a dead letter whose order has no row, which nothing else would keep from being written again: the
// order number's own, so that it is kept once. Both are UUIDv7.
func letterID(orderSn string) string {
	if id, ok := ordersn.ID(orderSn); ok {
		return id.String()
	}
	return uuid.Must(uuid.NewV7()).String()
}

func (w *Writer) dead(goodsID int64, sn string, reason FailureReason, from DeliveryInfo, body []byte) DeadLetter {
	d := DeadLetter{
		ID: uuid.Must(uuid.NewV7()).String(), GoodsID: goodsID, OrderSn: sn, Reason: reason,
		Attempts: from.Attempts, FirstSeenAt: from.FirstSeenAt, Origin: from.Origin, Body: body,
	}
	if d.FirstSeenAt.IsZero() {
		d.FirstSeenAt = w.now().UTC()
	}
	return d
}
