package sqlstore

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/payment"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/reservation"
)

var races = flag.Int("store.races", 1000,
	"how often pay races cancel, and a callback expiry, on MariaDB")

// atOnce is the number of concurrent races, so that they also compete for the goods row.
const atOnce = 8

// raceFixture is a sale with one order per race.
type raceFixture struct {
	fixture
	sale  seckill.Sale
	lines []reservation.OrderLine
}

// newRaceFixture writes one order of one unit per race, in batches of this size. The i-th batch is
// due i milliseconds after the hour.
func newRaceFixture(t *testing.T, together int) *raceFixture {
	t.Helper()
	h := newFixture(t, env.MariaDB(t).NewDatabase(t))
	a := &raceFixture{fixture: h, sale: h.exposed(int64(*races), 1)}
	a.lines = h.lines(a.sale, *races)
	due := 0
	for part := range slices.Chunk(a.lines, together) {
		b := batchOf(a.sale.GoodsID, part...)
		b.PayBy = a.payBy(due)
		h.write(b)
		due++
	}
	return a
}

func (a *raceFixture) payBy(i int) time.Time {
	return today.Add(time.Hour + time.Duration(i)*time.Millisecond)
}

// maxStartDelay bounds the random delay of all steps but the last. The last step is slower, because
// it waits for the goods row.
const maxStartDelay = 12 * time.Millisecond

// race runs each order's steps concurrently. All but the last begin after a random delay, so that
// every interleaving occurs.
func (a *raceFixture) race(steps func(i int) []func(context.Context) error) {
	a.t.Helper()
	g, ctx := errgroup.WithContext(a.t.Context())
	g.SetLimit(atOnce)
	for i := range a.lines {
		g.Go(func() error {
			var group errgroup.Group
			begin := make(chan struct{})
			all := steps(i)
			for n, step := range all {
				pause := rand.N(maxStartDelay)
				if n == len(all)-1 {
					pause = 0
				}
				group.Go(func() error {
					<-begin
					time.Sleep(pause)
					return retry(ctx, func() error { return step(ctx) })
				})
			}
			close(begin)
			return group.Wait()
		})
	}
	require.NoError(a.t, g.Wait())
}

// payments reads all payments by order number.
func (a *raceFixture) payments() map[string][]paymentRow {
	a.t.Helper()
	var rows []paymentRow
	q := a.read(a.t.Context()).Where("goods_id = ?", a.sale.GoodsID).Order("payment_id")
	require.NoError(a.t, q.Find(&rows).Error)
	of := make(map[string][]paymentRow)
	for _, r := range rows {
		of[r.OrderSn] = append(of[r.OrderSn], r)
	}
	return of
}

// requireOutcome requires that each order is paid or has the other status. No payment may be both
// kept and refunded. Stock and holdings must be exact, and each unpaid order must have one move. It
// returns the number of paid orders.
func (a *raceFixture) requireOutcome(
	other order.Status, move order.MoveKind, reason payment.RefundReason,
) (paid int) {
	a.t.Helper()
	payments, moved := a.payments(), map[string]int{}
	for _, m := range a.moves(a.sale.GoodsID) {
		require.Equal(a.t, move, m.Kind)
		moved[m.OrderSn]++
	}
	for _, o := range a.all(a.sale.GoodsID) {
		kept := slices.IndexFunc(payments[o.OrderSn],
			func(r paymentRow) bool { return r.State == payment.Kept })
		for i, p := range payments[o.OrderSn] {
			if i != kept {
				require.Equal(a.t, payment.Refunding, p.State)
				require.Contains(a.t, []payment.RefundReason{reason, payment.RefundSecond},
					p.Reason)
			}
		}
		if o.Status == order.Paid {
			paid++
			require.GreaterOrEqual(a.t, kept, 0, "a paid order keeps one payment")
			require.Zero(a.t, moved[o.OrderSn])
			continue
		}
		require.Equal(a.t, other, o.Status)
		require.Equal(a.t, -1, kept, "an unpaid order keeps no payment")
		require.Equal(a.t, 1, moved[o.OrderSn], "an unpaid order has one stock move")
	}
	require.EqualValues(a.t, paid, a.requireBalanced(a.sale.GoodsID))
	return paid
}

// TestRace_PaymentAgainstCancel checks that exactly one of a concurrent payment and cancellation
// succeeds.
func TestRace_PaymentAgainstCancel(t *testing.T) {
	t.Parallel()
	a := newRaceFixture(t, *races)
	paid, cancelled := make([]bool, *races), make([]bool, *races)
	keep := func(won *bool, err error) error {
		if *won = err == nil; isRefusal(err) {
			return nil
		}
		return err
	}
	at := today.Add(5 * time.Minute)
	a.race(func(i int) []func(context.Context) error {
		sn := a.lines[i].OrderSn
		return []func(context.Context) error{
			func(context.Context) error {
				return keep(&paid[i], errorOf(a.Pay(a.sale.GoodsID, sn, at)))
			},
			func(context.Context) error {
				return keep(&cancelled[i], errorOf(a.CancelOne(a.sale.GoodsID, sn, at)))
			},
		}
	})
	wins := 0
	for i := range paid {
		require.NotEqual(t, paid[i], cancelled[i], "exactly one of the two succeeds")
		if paid[i] {
			wins++
		}
	}
	require.Equal(t, wins,
		a.requireOutcome(order.Cancelled, order.MoveCancel, payment.RefundCancelled))
}

// TestRace_CallbackAgainstExpiry checks that an order keeps at most one payment. A callback that is
// delivered three times, a second payment and the expiry run concurrently. Repeated callbacks must
// get the same answer.
func TestRace_CallbackAgainstExpiry(t *testing.T) {
	t.Parallel()
	a := newRaceFixture(t, 1)
	ids := []string{"first", "first", "first", "other"}
	answers := make([][4]payment.State, *races)
	a.race(func(i int) (steps []func(context.Context) error) {
		for n, id := range ids {
			p := payment.Payment{
				ID: fmt.Sprintf("%s-%d", id, i), GoodsID: a.sale.GoodsID,
				OrderSn: a.lines[i].OrderSn, Amount: a.sale.Price,
			}
			steps = append(steps, func(ctx context.Context) error {
				list, err := a.Receive(ctx, p.GoodsID, []payment.Payment{p},
					a.payBy(i).Add(-time.Millisecond))
				if err == nil {
					answers[i][n], err = list[0].State, list[0].Err
				}
				return err
			})
		}
		return append(steps, func(ctx context.Context) error {
			return errorOf(a.ExpireDue(ctx, a.sale.GoodsID, a.payBy(i), 100))
		})
	})
	kept := 0
	for _, got := range answers {
		require.Equal(t, []payment.State{got[0], got[0]}, got[1:3], "callbacks of one payment")
		for _, state := range []payment.State{got[0], got[3]} {
			require.Contains(t, []payment.State{payment.Kept, payment.Refunding}, state)
			if state == payment.Kept {
				kept++
			}
		}
	}
	require.Equal(t, kept, a.requireOutcome(order.Expired, order.MoveExpire, payment.RefundLate))
}

// TestRace_OverlappingBatchesOfPayments checks that concurrent batches of the same payments, each
// in another order, do not deadlock. Every transaction succeeds at its first try, and each order
// keeps its payment.
func TestRace_OverlappingBatchesOfPayments(t *testing.T) {
	t.Parallel()
	a := newRaceFixture(t, *races)
	for lines := range slices.Chunk(a.lines, 100) {
		payments := mapSlice(lines, func(l reservation.OrderLine) payment.Payment {
			return a.payment(a.sale, "p-"+l.OrderSn, l.OrderSn)
		})
		var g errgroup.Group
		for range atOnce {
			batch := slices.Clone(payments)
			rand.Shuffle(len(batch), func(i, j int) { batch[i], batch[j] = batch[j], batch[i] })
			g.Go(func() error {
				list, err := a.Receive(t.Context(), a.sale.GoodsID, batch, today)
				for i, r := range list {
					if r.Err != nil || r.State != payment.Kept || r.Payment != batch[i] {
						err = errors.Join(err, fmt.Errorf("payment %d: %+v", i, r))
					}
				}
				return err
			})
		}
		require.NoError(t, g.Wait())
	}
	require.Equal(t, *races, a.requireOutcome(order.Created, "", ""))
}
