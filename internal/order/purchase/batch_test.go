package purchase_test

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/apierror"
	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/purchase"
	"flashsale.dev/seckill/internal/ordersn"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/reservation"
)

const goodsID = 42

var keys = ordersn.NewKeys([]byte("0123456789abcdef0123456789abcdef"))

// newService returns a service whose publish deadline is a second.
func newService(
	sales order.SaleReader, redis purchase.ReservationStore, orders purchase.Orders,
	publisher order.Publisher,
) *purchase.Service {
	return purchase.NewService(sales, redis, orders, publisher, keys, nil, nil, nil, time.Second,
		slog.New(slog.DiscardHandler))
}

// request returns the purchase of a unit.
func request(buyer, path string) purchase.Request {
	return purchase.Request{
		GoodsID: goodsID, Buyer: seckill.Actor{ID: buyer}, Path: path, Quantity: 1,
	}
}

// redis records when each batch reaches it. Every buyer gets the same verdict at once.
type redis struct {
	purchase.ReservationStore
	began   time.Time
	batches chan batch
	verdict reservation.VerdictCode
}

type batch struct {
	size  int
	after time.Duration // since the beginning of the test
}

func (r *redis) Reserve(
	_ context.Context, _, _ int64, rs []reservation.Reservation,
) (reservation.Result, error) {
	r.batches <- batch{len(rs), time.Since(r.began)}
	res := reservation.Result{OutboxID: "1-0", Entries: []byte("[]")}
	for _, one := range rs {
		verdict := reservation.Verdict{Code: r.verdict, OrderSn: one.OrderSn}
		res.Verdicts = append(res.Verdicts, verdict)
	}
	return res, nil
}

func (r *redis) Confirmed(context.Context, int64, ...string) error { return nil }
func (r *redis) EndRest(context.Context, int64) error              { return nil }

// broker confirms each message after a time.
type broker struct{ confirmsAfter time.Duration }

func (b broker) Publish(ctx context.Context, _ int64, _ []byte) error {
	select {
	case <-time.After(b.confirmsAfter):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

type sales struct{ order.SaleReader }

func (sales) ExposedSale(context.Context, int64) (seckill.View, error) {
	return seckill.View{}, nil
}

// secondBatch places one purchase, and three more while its message is not confirmed. It returns
// the second batch that reaches Redis, and the errors of all four purchases.
func secondBatch(
	t *testing.T, verdict reservation.VerdictCode, confirmsAfter time.Duration,
) (second batch, failed []error) {
	t.Helper()
	store := &redis{began: time.Now(), batches: make(chan batch, 4), verdict: verdict}
	service := newService(sales{}, store, nil, broker{confirmsAfter})
	errs := make(chan error, 4)
	place := func(buyer string) {
		path := keys.Issue(goodsID, buyer, time.Now()).Path()
		_, err := service.Place(t.Context(), request(buyer, path))
		errs <- err
	}
	go place("1")
	synctest.Wait() // the first batch has left, and its purchase waits for the confirm
	require.Equal(t, batch{1, 0}, <-store.batches)
	for _, buyer := range []string{"2", "3", "4"} {
		go place(buyer)
	}
	second = <-store.batches
	for range cap(errs) {
		if err := <-errs; err != nil {
			failed = append(failed, err)
		}
	}
	synctest.Wait()
	return second, failed
}

// TestPlace_BatchWaitsForConfirmOfTheOneBefore checks ADR 84 on a clock that moves only while
// nothing runs: a batch begins with the confirm of the one before, after 10 ms at the latest, and
// holds the purchases that arrived meanwhile.
func TestPlace_BatchWaitsForConfirmOfTheOneBefore(t *testing.T) {
	for name, c := range map[string]struct {
		confirmsAfter, waits time.Duration
		failed               int
	}{
		"confirmed soon":       {700 * time.Microsecond, 700 * time.Microsecond, 0},
		"confirmed late":       {30 * time.Millisecond, 10 * time.Millisecond, 0},
		"not confirmed at all": {time.Hour, 10 * time.Millisecond, 4},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				second, failed := secondBatch(t, reservation.Taken, c.confirmsAfter)
				require.Equal(t, batch{3, c.waits}, second)
				require.Len(t, failed, c.failed)
				for _, err := range failed {
					require.Equal(t, apierror.Unavailable, apierror.ReasonOf(err))
				}
			})
		})
	}
}

// TestPlace_BatchWithoutUnitsDelaysNoOther checks that a batch that sold nothing has no confirm for
// which the next one waits.
func TestPlace_BatchWithoutUnitsDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		second, failed := secondBatch(t, reservation.TooFew, time.Hour)
		require.Zero(t, second.after)
		require.Len(t, failed, 4)
		for _, err := range failed {
			require.Equal(t, apierror.SoldOut, apierror.ReasonOf(err))
		}
	})
}

// soldOutRedis has no unit left, unless one has returned. It counts the calls that ask for that.
type soldOutRedis struct {
	redis
	returned bool
	away     error
	asked    int
}

func (r *soldOutRedis) SoldOut(
	_ context.Context, _, _ int64, rs []reservation.Reservation,
) ([]bool, error) {
	r.asked++
	refused := make([]bool, len(rs))
	for i := range refused {
		refused[i] = !r.returned
	}
	return refused, r.away
}

// TestCheckSoldOut_AsksOnlyAfterACallThatFoundNoUnit checks that the hint of an earlier call only
// decides whether Redis is asked. It ends with a unit that has returned, or with an error.
func TestCheckSoldOut_AsksOnlyAfterACallThatFoundNoUnit(t *testing.T) {
	store := &soldOutRedis{redis: redis{batches: make(chan batch, 4), verdict: reservation.TooFew}}
	service := newService(sales{}, store, nil, broker{})
	issuedAt := func(issued time.Time) purchase.Request {
		return request("1", keys.Issue(goodsID, "1", issued).Path())
	}
	valid := issuedAt(time.Now())
	expectRefusal := func(reason apierror.Reason, p purchase.Request, asked int) {
		t.Helper()
		require.Equal(t, reason, apierror.ReasonOf(service.CheckSoldOut(t.Context(), p)))
		require.Equal(t, asked, store.asked)
	}
	sellsOut := func() {
		_, err := service.Place(t.Context(), valid)
		require.Equal(t, apierror.SoldOut, apierror.ReasonOf(err))
	}
	expectRefusal("", valid, 0)
	sellsOut()
	expectRefusal(apierror.SoldOut, valid, 1)
	expectRefusal("", issuedAt(time.Now().Add(-ordersn.PathTTL)), 1) // it may have an order
	invented := valid
	invented.Path = valid.Path[:31] + "x"
	expectRefusal("", invented, 1)
	store.away = context.DeadlineExceeded
	expectRefusal(apierror.Unavailable, valid, 2)
	expectRefusal("", valid, 2)
	store.away, store.returned = nil, true
	sellsOut()
	expectRefusal("", valid, 3)
	expectRefusal("", valid, 3)
}
