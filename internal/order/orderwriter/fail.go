package orderwriter

import (
	"context"
	"time"

	"github.com/google/uuid"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/message"
	"flashsale.dev/seckill/internal/ordersn"
)

// fail writes orders as failed, one by one, each with its dead letter, and releases their units.
func (w *Writer) fail(
	ctx context.Context, goodsID int64, lines []sourcedLine, reason order.FailureReason,
) error {
	for _, l := range lines {
		if err := w.failOne(ctx, goodsID, l, reason); err != nil {
			return err
		}
	}
	return nil
}

// failOne writes one order as failed. If MySQL refuses that row too, it stores a dead letter alone.
func (w *Writer) failOne(
	ctx context.Context, goodsID int64, l sourcedLine, reason order.FailureReason,
) error {
	body := message.EncodeOrder(goodsID, l.OrderLine)
	d := newDeadLetter(goodsID, l.OrderSn, reason, l.delivery, body)
	began := time.Now()
	var out order.Outcome
	err := w.retry(ctx, "write a failed order", goodsID, func() error {
		now, err := w.Store.Now(ctx)
		if err != nil {
			return err
		}
		out, err = w.Store.WriteFailed(ctx, l.OrderLine, d, now)
		return err
	})
	if err != nil && ctx.Err() == nil {
		w.Log.ErrorContext(ctx, "cannot write an order as failed, keeping its dead letter only",
			"goods_id", goodsID, "order_sn", l.OrderSn, "err", err)
		d.ID = order.DeadLetterID(l.OrderSn)
		return w.addDeadLetter(ctx, d)
	}
	if err == nil {
		w.committed(ctx, goodsID, out, began)
	}
	return err
}

// addDeadLetter keeps a message that has no row.
func (w *Writer) addDeadLetter(ctx context.Context, d order.DeadLetter) error {
	err := w.retry(ctx, "keep a dead letter", d.GoodsID, func() error {
		return w.Store.AddDeadLetter(ctx, d)
	})
	if err == nil && w.Metrics != nil {
		w.Metrics.DeadLettered(d.Reason)
	}
	return err
}

// newMalformed makes the dead letter of a message or a line that breaks a rule. It has no row that
// would show a redelivery, so its id follows from the content and the time of its message. If the
// broker does not report that time, the same content may be another message.
func newMalformed(
	goods int64, sn string, from order.DeliveryInfo, body []byte,
) order.DeadLetter {
	d := newDeadLetter(goods, sn, order.FailedMalformed, from, body)
	if !from.FirstSeenAt.IsZero() {
		d.ID = ordersn.IDAt(from.FirstSeenAt, body).String()
	}
	return d
}

// maxBody bounds the body of a dead letter. One order has less than 20,000 bytes. MySQL refuses rows
// and statements of some 16 MiB, and the queue would redeliver such a message without end. A page of
// dead letters has a hundred bodies, which an API must be able to hold.
const maxBody = 64 << 10

// newDeadLetter makes the dead letter of a delivery, with at most the first maxBody bytes of its
// body. Where the broker does not report when the message was published, it counts as seen now.
func newDeadLetter(
	goodsID int64, sn string, reason order.FailureReason, from order.DeliveryInfo, body []byte,
) order.DeadLetter {
	d := order.DeadLetter{
		ID: uuid.Must(uuid.NewV7()).String(), GoodsID: goodsID, OrderSn: sn, Reason: reason,
		Attempts: from.Attempts, FirstSeenAt: from.FirstSeenAt, Origin: from.Origin,
		Body: body[:min(len(body), maxBody)],
	}
	if d.FirstSeenAt.IsZero() {
		d.FirstSeenAt = time.Now().UTC()
	}
	return d
}
