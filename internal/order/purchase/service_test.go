package purchase_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/apierror"
	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/ordersn"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/reservation"
)

// repeated is Redis, MySQL and the broker for a path that was used before.
type repeated struct {
	redis
	pending, written bool
	lookup, publish  error // of MySQL and of the broker
	published        int
}

func (r *repeated) Pending(
	context.Context, int64, string,
) (reservation.OrderLine, bool, error) {
	return reservation.OrderLine{}, r.pending, nil
}

func (r *repeated) Written(context.Context, int64, string) (bool, error) {
	return r.written, r.lookup
}

func (r *repeated) Publish(context.Context, int64, []byte) error {
	r.published++
	return r.publish
}

// TestPlace_RepeatedPathIsConfirmedWithItsOrder checks that a pending order is published again, as
// the first message may be lost, and that any other order must have a row.
func TestPlace_RepeatedPathIsConfirmedWithItsOrder(t *testing.T) {
	failed := errors.New("no answer")
	for name, c := range map[string]struct {
		repeated
		reason    apierror.Reason
		published int
	}{
		"pending":             {repeated{pending: true}, "", 1},
		"pending, queue down": {repeated{pending: true, publish: order.ErrQueueDown}, "", 1},
		"pending, no confirm": {repeated{pending: true, publish: failed}, apierror.Unavailable, 1},
		"written":             {repeated{written: true}, "", 0},
		"neither":             {repeated{}, apierror.Unavailable, 0},
		"no answer of MySQL":  {repeated{lookup: failed}, apierror.Unavailable, 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := c.repeated
			r.batches, r.verdict = make(chan batch, 1), reservation.Repeated
			number := keys.Issue(goodsID, "1", time.Now())
			sn, err := newService(sales{}, &r, &r, &r).Place(t.Context(),
				request("1", number.Path()))
			require.Equal(t, c.reason, apierror.ReasonOf(err))
			require.Equal(t, c.published, r.published)
			if c.reason == "" {
				require.Equal(t, number.String(), sn)
			}
		})
	}
}

// sleepy is a process that sleeps for longer than the publish deadline, before it publishes an order
// or while the queue confirms it.
type sleepy struct {
	repeated
	beforePublish, beforeConfirm time.Duration
}

func (s *sleepy) Pending(
	context.Context, int64, string,
) (reservation.OrderLine, bool, error) {
	time.Sleep(s.beforePublish)
	return reservation.OrderLine{}, true, nil
}

func (s *sleepy) Publish(context.Context, int64, []byte) error {
	time.Sleep(s.beforeConfirm)
	return nil
}

// TestPlace_LateConfirmPromisesNothing checks that an order is promised only if the queue has it
// within the time for which a rebuild waits, also if its process has slept.
func TestPlace_LateConfirmPromisesNothing(t *testing.T) {
	const late = time.Second + time.Millisecond
	for name, c := range map[string]struct {
		verdict                      reservation.VerdictCode
		beforePublish, beforeConfirm time.Duration
		reason                       apierror.Reason
	}{
		"in time":                        {verdict: reservation.Taken},
		"confirmed late":                 {reservation.Taken, 0, late, apierror.Unavailable},
		"repeated in time":               {verdict: reservation.Repeated},
		"repeated, slept before publish": {reservation.Repeated, late, 0, apierror.Unavailable},
		"repeated, confirmed late":       {reservation.Repeated, 0, late, apierror.Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &sleepy{beforePublish: c.beforePublish, beforeConfirm: c.beforeConfirm}
				s.batches, s.verdict = make(chan batch, 1), c.verdict
				path := keys.Issue(goodsID, "1", time.Now()).Path()
				_, err := newService(sales{}, s, s, s).Place(t.Context(), request("1", path))
				require.Equal(t, c.reason, apierror.ReasonOf(err))
			})
		})
	}
}

// shutRedis is a Redis that refuses everything, and MySQL without the order.
type shutRedis struct {
	redis
	order.SaleReader
	gate seckill.GateState
	sale seckill.View
}

func (r *shutRedis) Reserve(
	context.Context, int64, int64, []reservation.Reservation,
) (reservation.Result, error) {
	return reservation.Result{}, &seckill.GateError{State: r.gate}
}

func (*shutRedis) Written(context.Context, int64, string) (bool, error) { return false, nil }

func (r *shutRedis) Sale(context.Context, int64) (seckill.View, error) { return r.sale, nil }

func (r *shutRedis) ExposedSale(context.Context, int64) (seckill.View, error) { return r.sale, nil }

// TestPlace_ShutGateRefusesOnlyWhatIsOver checks that a path is refused for good only if it can
// have no order in the queue. Any other one asks again.
func TestPlace_ShutGateRefusesOnlyWhatIsOver(t *testing.T) {
	now := time.Now()
	valid := keys.Issue(goodsID, "1", now).Path()
	expired := keys.Issue(goodsID, "1", now.Add(-ordersn.PathTTL)).Path()
	const invented = "an earlier release may have stored this one"
	for name, c := range map[string]struct {
		path          string
		gate          seckill.GateState
		over, retired bool
		refusal       string
	}{
		"on sale":           {valid, seckill.GateShut, false, false, "UNAVAILABLE"},
		"on sale, invented": {invented, seckill.GateShut, false, false, "UNAVAILABLE"},
		"backlog":           {valid, seckill.GateBacklog, true, true, "orders arrive faster"},
		"over":              {expired, seckill.GateMissing, true, false, "UNAVAILABLE"},
		"over, invented":    {invented, seckill.GateMissing, true, false, "BAD_PATH"},
		"retired":           {valid, seckill.GateMissing, true, true, "ENDED"},
		"retired, expired":  {expired, seckill.GateMissing, true, true, "BAD_PATH"},
	} {
		t.Run(name, func(t *testing.T) {
			r := &shutRedis{gate: c.gate}
			r.sale = seckill.View{Now: now.Add(time.Second), Sale: seckill.Sale{
				Status: seckill.Exposed, EndAt: now.Add(time.Hour), Retired: c.retired,
			}}
			if c.over {
				r.sale.EndAt = now
			}
			_, err := newService(r, r, r, broker{}).Place(t.Context(), request("1", c.path))
			require.ErrorContains(t, err, c.refusal)
		})
	}
}
