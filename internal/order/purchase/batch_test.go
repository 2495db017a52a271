package purchase_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/purchase"
	"flashsale.dev/seckill/internal/ordersn"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/reservation"
)

const goodsID = 42

// redis records when each batch reaches it. Every buyer gets the same verdict at once.
type redis struct {
	purchase.ReservationStore
	began   time.Time
	batches chan batch
	verdict reservation.VerdictCode

	confirms      chan batch // calls of Confirmed; may be nil
	confirmsFails error
}

// batch is a call for some purchases or messages.
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

func (r *redis) Confirmed(_ context.Context, _ int64, ids ...string) error {
	if r.confirms != nil {
		r.confirms <- batch{len(ids), time.Since(r.began)}
	}
	return r.confirmsFails
}

func (r *redis) EndRest(context.Context, int64) error { return nil }

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

// newService returns a service with a store and a broker, and a function that makes a buyer's
// request.
func newService(store purchase.ReservationStore, queue order.Publisher) (
	*purchase.Service, func(buyer string, issued time.Time) purchase.Request,
) {
	keys := ordersn.NewKeys([]byte("0123456789abcdef0123456789abcdef"))
	service := purchase.NewService(sales{}, store, nil, queue, keys, nil, nil, nil, time.Second,
		slog.New(slog.DiscardHandler))
	return service, func(buyer string, issued time.Time) purchase.Request {
		return purchase.Request{
			GoodsID: goodsID, Buyer: seckill.Actor{ID: buyer}, Quantity: 1,
			Path: keys.Issue(goodsID, buyer, issued).Path(),
		}
	}
}

// secondBatch places one purchase, and three more while its message is not confirmed. It returns
// the second batch that reaches Redis, and the errors of all four purchases.
func secondBatch(
	t *testing.T, verdict reservation.VerdictCode, confirmsAfter time.Duration,
) (second batch, failed []error) {
	t.Helper()
	store := &redis{began: time.Now(), batches: make(chan batch, 4), verdict: verdict}
	service, request := newService(store, broker{confirmsAfter})
	errs := make(chan error, 4)
	place := func(buyer string) {
		_, err := service.Place(t.Context(), request(buyer, time.Now()))
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
	time.Sleep(time.Second) // until the messages have left the outbox
	return second, failed
}

// TestPlace_BatchWaitsForConfirmOfTheOneBefore checks ADR 84 on a clock that moves only while
// nothing runs: a batch begins with the confirm of the one before, after 2 ms at the latest, and
// holds the purchases that arrived meanwhile.
func TestPlace_BatchWaitsForConfirmOfTheOneBefore(t *testing.T) {
	for name, c := range map[string]struct {
		confirmsAfter, waits time.Duration
		failed               int
	}{
		"confirmed soon":       {700 * time.Microsecond, 700 * time.Microsecond, 0},
		"confirmed late":       {30 * time.Millisecond, 2 * time.Millisecond, 0},
		"not confirmed at all": {time.Hour, 2 * time.Millisecond, 4},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				second, failed := secondBatch(t, reservation.Taken, c.confirmsAfter)
				require.Equal(t, batch{3, c.waits}, second)
				require.Len(t, failed, c.failed)
				for _, err := range failed {
					require.Equal(t, seckill.Unavailable, seckill.ReasonOf(err))
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
			require.Equal(t, seckill.SoldOut, seckill.ReasonOf(err))
		}
	})
}

// TestPlace_BatchAfterALargeOneWaits checks that a batch begins 400 µs after one of 16 purchases
// has ended, with the purchases that arrive meanwhile, and at once after one of 15.
func TestPlace_BatchAfterALargeOneWaits(t *testing.T) {
	for size, waits := range map[int]time.Duration{15: 0, 16: 400 * time.Microsecond} {
		synctest.Test(t, func(t *testing.T) {
			const confirmsAfter = 700 * time.Microsecond
			store := &redis{
				began: time.Now(), batches: make(chan batch, 4), verdict: reservation.Taken,
			}
			defer time.Sleep(time.Second) // until all are confirmed
			service, request := newService(store, broker{confirmsAfter})
			place := func(buyers int) {
				for i := range buyers {
					go func() {
						_, err := service.Place(t.Context(), request(fmt.Sprint(i), time.Now()))
						assert.NoError(t, err)
					}()
				}
				synctest.Wait()
			}
			place(1)
			require.Equal(t, batch{1, 0}, <-store.batches)
			place(size) // while the first batch is not confirmed
			require.Equal(t, batch{size, confirmsAfter}, <-store.batches)
			place(3)
			require.Equal(t, batch{3, 2*confirmsAfter + waits}, <-store.batches)
		})
	}
}

// TestPlace_MessagesOf20MillisecondsLeaveTheOutboxTogether checks that the first message leaves
// the outbox at once, and the next ones together, unless that call has failed.
func TestPlace_MessagesOf20MillisecondsLeaveTheOutboxTogether(t *testing.T) {
	for _, failure := range []error{nil, context.DeadlineExceeded} {
		synctest.Test(t, func(t *testing.T) {
			store := &redis{
				began: time.Now(), batches: make(chan batch, 4), verdict: reservation.Taken,
				confirms: make(chan batch, 4), confirmsFails: failure,
			}
			defer time.Sleep(time.Second)
			service, request := newService(store, broker{time.Millisecond})
			place := func(buyer string) {
				_, err := service.Place(t.Context(), request(buyer, time.Now()))
				require.NoError(t, err)
				synctest.Wait()
			}
			for i := range 3 {
				place(fmt.Sprint(i))
			}
			require.Equal(t, 3*time.Millisecond, time.Since(store.began), "no buyer waits for it")
			require.Equal(t, batch{1, time.Millisecond}, <-store.confirms)
			if failure == nil {
				require.Equal(t, batch{2, 21 * time.Millisecond}, <-store.confirms)
				place("3")
				require.Equal(t, batch{1, 41 * time.Millisecond}, <-store.confirms)
				return
			}
			require.Equal(t, batch{1, 2 * time.Millisecond}, <-store.confirms)
		})
	}
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
	service, request := newService(store, broker{})
	valid := request("1", time.Now())
	expectRefusal := func(reason seckill.Reason, p purchase.Request, asked int) {
		t.Helper()
		require.Equal(t, reason, seckill.ReasonOf(service.CheckSoldOut(t.Context(), p)))
		require.Equal(t, asked, store.asked)
	}
	sellsOut := func() {
		_, err := service.Place(t.Context(), valid)
		require.Equal(t, seckill.SoldOut, seckill.ReasonOf(err))
	}
	expectRefusal("", valid, 0)
	sellsOut()
	expectRefusal(seckill.SoldOut, valid, 1)
	expectRefusal("", request("1", time.Now().Add(-ordersn.PathTTL)), 1) // it may have an order
	invented := valid
	invented.Path = request("1", time.Now()).Path[:31] + "x"
	expectRefusal("", invented, 1)
	store.away = context.DeadlineExceeded
	expectRefusal(seckill.Unavailable, valid, 2)
	expectRefusal("", valid, 2)
	store.away, store.returned = nil, true
	sellsOut()
	expectRefusal("", valid, 3)
	expectRefusal("", valid, 3)
}
