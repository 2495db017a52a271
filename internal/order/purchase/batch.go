package purchase

import (
	"context"
	"errors"
	"time"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/message"
	"flashsale.dev/seckill/internal/seckill/reservation"
)

// publication is one message in transit. done closes when the attempt to publish has ended. err is
// set before: nil if the queue has confirmed the message or is down, else the reason why the
// message is not confirmed.
type publication struct {
	done chan struct{}
	err  error
}

// wait returns the outcome of the publication, or the cause of ctx if that ends first.
func (p *publication) wait(ctx context.Context) error {
	select {
	case <-p.done:
		return p.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// maxConfirmWait is the longest time that a batch waits for the confirm of the one before. ADR 84
// has the cost of shorter and longer waits.
const maxConfirmWait = 10 * time.Millisecond

// waitBriefly waits for the end of the publication, at most maxConfirmWait. Calls that arrive
// meanwhile share the next batch, and larger batches cost Redis and RabbitMQ less.
func (p *publication) waitBriefly() {
	timer := time.NewTimer(maxConfirmWait)
	defer timer.Stop()
	select {
	case <-p.done:
	case <-timer.C:
	}
}

// reserveBatch reserves a batch in Redis and publishes the taken reservations. It does not wait for
// a late confirm, so that the next batch can start.
func (s *Service) reserveBatch(
	ctx context.Context, key batchKey, traced []tracedReservation,
) ([]result, error) {
	rs, marks := splitTraces(traced)
	// The deadline begins before the script: a rebuild shuts the gate, waits for the same time, and
	// then publishes what is left in the outbox.
	publishBy := time.Now().Add(s.deadline)
	ctx, end := order.StartSpan(ctx, s.tracer, "reserve in Redis", marks...)
	res, err := s.callReserve(ctx, key, rs)
	end(err)
	if err != nil {
		return nil, err
	}
	if res.Available == 0 {
		s.hints.Add(key.goodsID, hint{epoch: key.epoch, soldOut: true})
	}
	answers, taken := make([]result, len(rs)), int64(0)
	pub := &publication{done: make(chan struct{})}
	for i, v := range res.Verdicts {
		answers[i] = result{Verdict: v, notReplicated: res.NotReplicated}
		if v.Code == reservation.Taken {
			answers[i].publication = pub
			taken++
		}
	}
	if taken > 0 {
		if s.counters != nil {
			s.counters.Took(key.goodsID, taken)
		}
		body := message.EncodeOrders(key.goodsID, res.Entries)
		go s.publish(ctx, key.goodsID, res.OutboxID, body, publishBy, pub)
		pub.waitBriefly()
	}
	return answers, nil
}

// callReserve calls the reserve script for a batch.
func (s *Service) callReserve(
	ctx context.Context, key batchKey, rs []reservation.Reservation,
) (reservation.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, order.RedisDeadline)
	defer cancel()
	started := time.Now()
	res, err := s.redis.Reserve(ctx, key.goodsID, key.epoch, rs)
	if s.metrics != nil {
		s.metrics.Reserved(len(rs), res.Verdicts, time.Since(started), err)
	}
	return res, err
}

// checkBatch returns errors for the purchases that Redis refuses because no unit is left, and nil
// for the others. If Redis refuses none (units have returned, the gate is shut, or Redis does not
// answer), checkBatch forgets that the sale is sold out. The batches that wait then do not call
// Redis, so a paused Redis delays a purchase here by at most one deadline.
func (s *Service) checkBatch(
	ctx context.Context, key batchKey, traced []tracedReservation,
) ([]error, error) {
	rs, marks := splitTraces(traced)
	refusals := make([]error, len(rs))
	if !s.SeemsSoldOut(key.goodsID) {
		return refusals, nil
	}
	ctx, cancel := context.WithTimeout(ctx, order.RedisDeadline)
	defer cancel()
	started := time.Now()
	ctx, end := order.StartSpan(ctx, s.tracer, "reserve in Redis", marks...)
	refused, err := s.redis.SoldOut(ctx, key.goodsID, key.epoch, rs)
	end(err)
	took := time.Since(started)
	if err != nil {
		s.hints.Add(key.goodsID, hint{epoch: key.epoch})
		if s.metrics != nil {
			s.metrics.Reserved(len(rs), nil, took, err)
		}
		return nil, err
	}
	verdict := reservation.Verdict{Code: reservation.TooFew}
	verdicts, refusal := make([]reservation.Verdict, 0, len(rs)), verdict.Err()
	for i := range rs {
		if refused[i] {
			refusals[i], verdicts = refusal, append(verdicts, verdict)
		}
	}
	switch {
	case len(verdicts) == 0:
		s.hints.Add(key.goodsID, hint{epoch: key.epoch})
	case s.metrics != nil:
		s.metrics.Reserved(len(verdicts), verdicts, took, nil)
	}
	return refusals, nil
}

// publish sends the message of one batch. While the queue is down, the outbox in Redis alone
// guarantees the orders, and the relay publishes them. The relay also publishes a message that was
// not confirmed in time. Its buyers got no order number and must retry with the same path.
func (s *Service) publish(
	ctx context.Context, goodsID int64, outboxID string, body []byte, by time.Time,
	pub *publication,
) {
	sendCtx, end := order.StartSpan(ctx, s.tracer, "publish to RabbitMQ")
	err := s.publishBy(sendCtx, goodsID, body, by)
	end(err)
	down := errors.Is(err, order.ErrQueueDown)
	if !down {
		pub.err = err
	}
	close(pub.done)
	if err == nil {
		_, err = s.confirms.Do(ctx, goodsID, outboxID)
	}
	if err != nil {
		endCtx, cancel := context.WithTimeout(ctx, order.RedisDeadline)
		defer cancel()
		_ = s.redis.EndRest(endCtx, goodsID) // without it the relay finds the message later
	}
	if err != nil && !down {
		// Without the request's id, so that the warnings of an outage are equal and the log has one
		// in 10 s.
		s.log.Warn("message not confirmed, the relay will publish it",
			"goods_id", goodsID, "err", err)
	}
}

// publishBy publishes a message that the queue must confirm by a time. A process that has slept may
// find both the confirm and the end of that time. A rebuild may have ended meanwhile without the
// order, which may then fail. So such a confirm permits no promise.
func (s *Service) publishBy(
	ctx context.Context, goodsID int64, body []byte, by time.Time,
) error {
	ctx, cancel := context.WithDeadline(ctx, by)
	defer cancel()
	err := s.publisher.Publish(ctx, goodsID, body)
	if err == nil && time.Now().After(by) {
		err = context.DeadlineExceeded
	}
	return err
}

// confirmBatch removes confirmed entries from the outbox. It runs after the answers to the buyers.
func (s *Service) confirmBatch(
	ctx context.Context, goodsID int64, ids []string,
) ([]struct{}, error) {
	ctx, cancel := context.WithTimeout(ctx, order.RedisDeadline)
	defer cancel()
	return make([]struct{}, len(ids)), s.redis.Confirmed(ctx, goodsID, ids...)
}

// tracedReservation is a reservation with the trace of its request.
type tracedReservation struct {
	reservation.Reservation
	mark string // trace context of the buyer's request
}

// splitTraces separates the reservations of a batch from their trace marks.
func splitTraces(traced []tracedReservation) (rs []reservation.Reservation, marks []string) {
	rs, marks = make([]reservation.Reservation, len(traced)), make([]string, len(traced))
	for i, t := range traced {
		rs[i], marks[i] = t.Reservation, t.mark
	}
	return rs, marks
}
