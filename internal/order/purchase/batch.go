package purchase

import (
	"context"
	"errors"
	"time"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/seckill/reservation"
)

// publication is one message on its way. done is closed when the queue has confirmed it, is known to be away, or has
// not answered in time; err is set before, and is nil in the first two cases.
type publication struct {
	done chan struct{}
	err  error
}

func (p *publication) wait(ctx context.Context) error {
	select {
	case <-p.done:
		return p.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (d *Service) reserveBatch(ctx context.Context, key batchKey, wishes []tracedReservation) ([]result, error) {
	rs, marks := splitTraces(wishes)
	ctx, end := order.StartSpan(ctx, d.tracer, "reserve in Redis", marks...)
	g, err := d.callReserve(ctx, key, rs)
	end(err)
	if err != nil {
		return nil, err
	}
	answers, taken := make([]result, len(rs)), make([][]byte, 0, len(rs))
	var pub *publication
	for i, v := range g.Verdicts {
		answers[i] = result{Verdict: v, notReplicated: g.NotReplicated}
		if v.Code != reservation.Taken {
			continue
		}
		entry, err := order.EncodeLine(rs[i].OrderLine)
		if err != nil {
			return nil, err
		}
		if pub == nil {
			pub = &publication{done: make(chan struct{})}
		}
		taken, answers[i].publication = append(taken, entry), pub
	}
	if pub != nil {
		if d.counters != nil {
			d.counters.Took(key.goodsID, int64(len(taken)))
		}
		go d.publish(ctx, key.goodsID, g.OutboxID, order.EncodeOrders(key.goodsID, order.JoinEntries(taken)), pub)
	}
	return answers, nil
}

// ask takes a group to Redis.
func (d *Service) callReserve(ctx context.Context, key batchKey, rs []reservation.Reservation) (reservation.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, order.RedisDeadline)
	defer cancel()
	left := time.Now()
	g, err := d.reserver.Reserve(ctx, key.goodsID, key.epoch, rs)
	if d.observer != nil {
		d.observer.Reserved(len(rs), g.Verdicts, time.Since(left), err)
	}
	return g, err
}

// publish sends one group's message. While the queue is known to be away the promise stands on Redis' outbox alone, and
// the relay sends it. So it does where the queue did not answer in time, but then nothing was promised yet: the buyers
// are told to ask again with the same path.
func (d *Service) publish(ctx context.Context, goodsID int64, outboxID string, body []byte, pub *publication) {
	sendCtx, cancel := context.WithTimeout(ctx, d.deadline)
	defer cancel()
	sendCtx, end := order.StartSpan(sendCtx, d.tracer, "publish to RabbitMQ")
	err := d.publisher.Publish(sendCtx, goodsID, body)
	end(err)
	away := errors.Is(err, order.ErrQueueDown)
	if !away {
		pub.err = err
	}
	close(pub.done)
	if err == nil {
		_, err = d.confirms.Do(ctx, goodsID, outboxID)
	}
	if err != nil && !away {
		d.log.WarnContext(ctx, "left to the relay", "goods_id", goodsID, "outbox_id", outboxID, "err", err)
	}
}

// confirmTrip removes what has been confirmed meanwhile, many entries at a time, off every buyer's way.
func (d *Service) confirmBatch(ctx context.Context, goodsID int64, ids []string) ([]struct{}, error) {
	ctx, cancel := context.WithTimeout(ctx, order.RedisDeadline)
	defer cancel()
	return make([]struct{}, len(ids)), d.reserver.Confirmed(ctx, goodsID, ids...)
}

// tracedReservation is a reservation that waits for its trip.
type tracedReservation struct {
	reservation.Reservation
	mark string // of the buyer's request
}

// splitTraces parts what a trip asks for from what follows it.
func splitTraces(wishes []tracedReservation) (rs []reservation.Reservation, marks []string) {
	rs, marks = make([]reservation.Reservation, len(wishes)), make([]string, len(wishes))
	for i, w := range wishes {
		rs[i], marks[i] = w.Reservation, w.mark
	}
	return rs, marks
}
