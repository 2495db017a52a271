package orderwriter

import (
	"context"
	"time"

	"github.com/google/uuid"

	"flashsale.dev/seckill/internal/order"
)

// fail writes orders as failed, one by one, each with its dead letter, and gives their units back.
func (w *Writer) fail(ctx context.Context, goodsID int64, lines []sourcedLine, reason order.FailureReason) error {
	for _, l := range lines {
		if err := w.failOne(ctx, goodsID, l, reason); err != nil {
			return err
		}
	}
	return nil
}

// failOne keeps a dead letter without an order where MySQL will not even take the failed row.
func (w *Writer) failOne(ctx context.Context, goodsID int64, l sourcedLine, reason order.FailureReason) error {
	body, err := order.EncodeLine(l.OrderLine)
	if err != nil {
		return err
	}
	d := w.dead(goodsID, l.OrderSn, reason, l.delivery, order.EncodeOrders(goodsID, order.JoinEntries([][]byte{body})))
	began := time.Now()
	var out order.Outcome
	err = w.retry(ctx, "write a failed order", func() error {
		var err error
		out, err = w.store.WriteFailed(ctx, goodsID, l.OrderLine, l.epoch, reason, d, w.now())
		return err
	})
	if err != nil && ctx.Err() == nil {
		w.log.ErrorContext(ctx, "failed order can't be written either", "goods_id", goodsID, "order_sn", l.OrderSn, "err", err)
		if w.observer != nil {
			w.observer.DeadLettered(reason)
		}
		d.ID = order.DeadLetterID(l.OrderSn)
		return w.retry(ctx, "keep a dead letter", func() error { return w.store.AddDeadLetter(ctx, d) })
	}
	if err == nil {
		if w.observer != nil {
			w.observer.Wrote(out, time.Since(began))
		}
		w.settle(ctx, goodsID, out)
	}
	return err
}

func (w *Writer) dead(goodsID int64, sn string, reason order.FailureReason, from order.DeliveryInfo, body []byte) order.DeadLetter {
	d := order.DeadLetter{
		ID: uuid.Must(uuid.NewV7()).String(), GoodsID: goodsID, OrderSn: sn, Reason: reason,
		Attempts: from.Attempts, FirstSeenAt: from.FirstSeenAt, Origin: from.Origin, Body: body,
	}
	if d.FirstSeenAt.IsZero() {
		d.FirstSeenAt = w.now().UTC()
	}
	return d
}
