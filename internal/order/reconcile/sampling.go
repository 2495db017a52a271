package reconcile

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/workers"
)

const (
	sampleInterval = 2 * time.Second
	// restFactor is how many times its own duration sampling pauses, up to maxRest. Sampling then
	// takes about a twentieth of the time, and its sums over many orders do not load MySQL.
	restFactor = 20
	// maxRest keeps the age of a sample below the minute of the alert SeckillBlind where sampling
	// is slow. It shows a growing backlog soon where MySQL hangs.
	maxRest = 30 * time.Second
	// queryDeadline bounds each query of a sample in MySQL.
	queryDeadline = 2 * time.Second
	// maxSlow is how many ledgers of a sample may exceed queryDeadline. The sample then reads no
	// further ledger: the sum over a sale with millions of orders exceeds the deadline, and while
	// MySQL hangs every one does.
	maxSlow = 3
)

// runSampling samples until ctx ends.
func (r *Reconciler) runSampling(ctx context.Context) error {
	for ctx.Err() == nil {
		took := r.sampleAll(ctx)
		workers.Sleep(ctx, min(max(sampleInterval, restFactor*took), maxRest))
	}
	return nil
}

// sampleAll takes one sample and returns its duration. It reports nothing if Redis answers for no
// sale; the age of the gauges then grows. If MySQL is down it reports the backlog without ledgers,
// and the last count of dead letters, because the backlog grows then.
func (r *Reconciler) sampleAll(ctx context.Context) time.Duration {
	began := time.Now()
	sales, err := r.sampleSales(ctx)
	s := Sample{Sales: sales}
	if err == nil {
		s.Memory, err = r.Redis.Memory(ctx)
	}
	r.countWaiting(ctx)
	s.Waiting, s.Took = r.waiting, time.Since(began)
	if err == nil {
		r.Metrics.Sampled(s)
	}
	workers.Warn(ctx, r.Log, "cannot sample the sales, retrying", err)
	return s.Took
}

// sampleSales samples every live sale, the newest first. It fails if Redis answers for no sale, or
// if all waits for Redis together exceed the deadline.
func (r *Reconciler) sampleSales(ctx context.Context) (samples []SaleSample, err error) {
	sales := r.Live.All()
	samples = make([]SaleSample, 0, len(sales))
	slow := 0
	var redisErr error
	var redisUp bool
	var waited time.Duration
	for _, sale := range slices.Backward(sales) {
		if sale.AtRest {
			samples = append(samples, restSample(sale.Sale))
			continue
		}
		began := time.Now()
		v, err := r.Redis.View(ctx, sale.GoodsID)
		notLoaded := errors.Is(err, seckill.ErrNotLoaded)
		redisUp = redisUp || err == nil || notLoaded
		if err != nil && !notLoaded {
			redisErr, waited = err, waited+time.Since(began)
		}
		if waited > queryDeadline {
			return samples, redisErr
		}
		s := sampleOf(sale.Sale, v, err)
		if slow < maxSlow && s.Gate == seckill.GateOpen {
			switch err := r.addLedger(ctx, v, &s); {
			case errors.Is(err, context.DeadlineExceeded):
				slow++
			case errors.Is(err, order.ErrTryAgain):
				slow = maxSlow // MySQL is down
			}
		}
		samples = append(samples, s)
	}
	if redisUp {
		redisErr = nil
	}
	return samples, redisErr
}

// sampleOf makes the sample of a sale from its view. A sale counts as missing if Redis lost it, or
// if its master in a cluster does not answer. Redis' clock decides what is over, and this host's
// where Redis does not answer.
func sampleOf(sale seckill.Sale, v seckill.View, err error) SaleSample {
	s := SaleSample{
		GoodsID: sale.GoodsID, Gate: seckill.GateMissing,
		OnSale: sale.Status == seckill.Exposed && cmp.Or(v.Now, time.Now()).Before(sale.EndAt),
	}
	if err != nil {
		return s
	}
	s.Gate, s.Outbox, s.Ledger, s.PendingAge = v.Gate, v.Outbox, redisLedger(v), v.PendingAge()
	if v.Outbox > 0 && !v.OldestAt.IsZero() {
		s.OutboxAge = max(0, v.Now.Sub(v.OldestAt))
	}
	return s
}

// restSample makes the sample of a sale at rest from its row: livesales compares every number with
// Redis in each check.
func restSample(sale seckill.Sale) SaleSample {
	sold := sale.Total - sale.Stock
	s := sampleOf(sale, seckill.View{
		Sale: sale, Gate: seckill.GateOpen, Available: sale.Stock, Sold: sold,
	}, nil)
	s.Accounted, s.Ledger.Balanced = true, true
	s.Ledger.Database = seckill.Database{Stock: sale.Stock, Active: sold}
	return s
}

// addLedger adds the ledger to a sample. The error is context.DeadlineExceeded if that takes too
// long.
func (r *Reconciler) addLedger(ctx context.Context, v seckill.View, s *SaleSample) error {
	ctx, cancel := context.WithTimeout(ctx, queryDeadline)
	defer cancel()
	ledger, err := r.fromView(ctx, v)
	if err == nil && ledger.Database.Active > ledger.Total { // or a merchant has added units since
		if v, err = r.Redis.View(ctx, v.GoodsID); err == nil {
			ledger, err = r.fromView(ctx, v)
		}
	}
	if err == nil {
		s.Ledger, s.Accounted = ledger, true
		return nil
	}
	return cmp.Or(ctx.Err(), err)
}

// countWaiting counts dead letters, refunds and parked orders. It keeps the last count if MySQL
// does not answer in time.
func (r *Reconciler) countWaiting(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, queryDeadline)
	defer cancel()
	if n, err := r.Store.CountDeadLetters(ctx); err == nil {
		r.waiting.DeadLetters = n
	}
	if n, err := r.Store.CountStoppedRefunds(ctx); err == nil {
		r.waiting.Refunds = n
	}
	if age, err := r.refundAge(ctx); err == nil {
		r.waiting.RefundAge = age
	}
	if n, err := r.Store.CountLateOrders(ctx); err == nil {
		r.waiting.Parked = n
	}
}

// refundAge returns for how long the oldest refund that is still tried has been due.
func (r *Reconciler) refundAge(ctx context.Context) (time.Duration, error) {
	since, err := r.Store.OldestRefund(ctx)
	if err != nil || since.IsZero() {
		return 0, err
	}
	now, err := r.Store.Now(ctx)
	return max(0, now.Sub(since)), err
}
