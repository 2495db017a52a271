package order

import (
	"context"
	"errors"
	"time"

	"flashsale.dev/seckill/internal/seckill"
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

func (d *Desk) reserveTrip(ctx context.Context, key deskKey, wishes []wish) ([]placed, error) {
	rs, marks := apart(wishes)
	ctx, end := d.tracer.Begin(ctx, "reserve in Redis", marks...)
	g, err := d.ask(ctx, key, rs)
	end(err)
	if err != nil {
		return nil, err
	}
	answers, taken := make([]placed, len(rs)), make([][]byte, 0, len(rs))
	var pub *publication
	for i, v := range g.Verdicts {
		answers[i] = placed{Verdict: v, unsure: g.Unsure}
		if v.Code != seckill.Taken {
			continue
		}
		entry, err := EncodeLine(rs[i].Line)
		if err != nil {
			return nil, err
		}
		if pub == nil {
			pub = &publication{done: make(chan struct{})}
		}
		taken, answers[i].publication = append(taken, entry), pub
	}
	if pub != nil {
		if d.tally != nil {
			d.tally.Took(key.goodsID, int64(len(taken)))
		}
		go d.publish(ctx, key.goodsID, g.OutboxID, EncodeOrders(key.goodsID, JoinEntries(taken)), pub)
	}
	return answers, nil
}

// ask takes a group to Redis.
func (d *Desk) ask(ctx context.Context, key deskKey, rs []seckill.Reservation) (seckill.Group, error) {
	ctx, cancel := context.WithTimeout(ctx, redisDeadline)
	defer cancel()
	left := time.Now()
	g, err := d.reserver.Reserve(ctx, key.goodsID, key.epoch, rs)
	d.observer.Reserved(len(rs), g.Verdicts, time.Since(left), err)
	return g, err
}

// publish sends one group's message. While the queue is known to be away the promise stands on Redis' outbox alone, and
// the relay sends it. So it does where the queue did not answer in time, but then nothing was promised yet: the buyers
// are told to ask again with the same path.
func (d *Desk) publish(ctx context.Context, goodsID int64, outboxID string, body []byte, pub *publication) {
	sendCtx, cancel := context.WithTimeout(ctx, d.deadline)
	defer cancel()
	sendCtx, end := d.tracer.Begin(sendCtx, "publish to RabbitMQ")
	err := d.publisher.Publish(sendCtx, goodsID, body)
	end(err)
	away := errors.Is(err, ErrQueueDown)
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
func (d *Desk) confirmTrip(ctx context.Context, goodsID int64, ids []string) ([]struct{}, error) {
	ctx, cancel := context.WithTimeout(ctx, redisDeadline)
	defer cancel()
	return make([]struct{}, len(ids)), d.reserver.Confirmed(ctx, goodsID, ids...)
}
