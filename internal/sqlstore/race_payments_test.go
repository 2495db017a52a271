package sqlstore

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/payment"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/reservation"
)

var races = flag.Int(
	"store.races", 1000, "how often pay races cancel, and a callback expiry, on MariaDB",
)

// atOnce is how many duels are fought at the same time, so that the goods row is fought for too.
const atOnce = 8

// raceFixture is a sale of which each order is fought for once.
type raceFixture struct {
	fixture
	sale  seckill.Sale
	lines []reservation.OrderLine
}

// newRaceFixture writes an order of one unit for each duel, the i-th to be paid until i milliseconds after the hour.
func newRaceFixture(t *testing.T) *raceFixture {
	t.Helper()
	h := newFixture(t, env.MariaDB(t).NewDatabase(t))
	a := &raceFixture{fixture: h, sale: h.exposed(int64(*races), 1)}
	a.lines = h.lines(a.sale, *races)
	for i, l := range a.lines {
		b := batchOf(a.sale.GoodsID, l)
		b.PayBy = a.payBy(i)
		_, err := h.WriteBatch(t.Context(), b)
		require.NoError(t, err)
	}
	return a
}

func (a *raceFixture) payBy(i int) time.Time {
	return today.Add(time.Hour + time.Duration(i)*time.Millisecond)
}

// maxStartDelay is how long the quick contenders wait at most: the last one has the goods row to wait for.
const maxStartDelay = 12 * time.Millisecond

// fight lets the contenders for each order begin in the same moment, the last one with a head start that is drawn at
// random, so that every order of their steps is tried.
func (a *raceFixture) race(contenders func(i int) []func(context.Context) error) {
	a.t.Helper()
	g, ctx := errgroup.WithContext(a.t.Context())
	g.SetLimit(atOnce)
	for i := range a.lines {
		g.Go(func() error {
			var duel errgroup.Group
			begin := make(chan struct{})
			all := contenders(i)
			for n, contend := range all {
				pause := rand.N(maxStartDelay)
				if n == len(all)-1 {
					pause = 0
				}
				duel.Go(func() error {
					<-begin
					time.Sleep(pause)
					return retry(ctx, func() error { return contend(ctx) })
				})
			}
			close(begin)
			return duel.Wait()
		})
	}
	require.NoError(a.t, g.Wait())
}

// payments reads what is known of all payments, by the order's number.
func (a *raceFixture) payments() map[string][]paymentRow {
	a.t.Helper()
	var rows []paymentRow
	require.NoError(
		a.t,
		a.read(a.t.Context()).Where("goods_id = ?", a.sale.GoodsID).Order("payment_id").Find(&rows).
			Error,
	)
	of := make(map[string][]paymentRow)
	for _, r := range rows {
		of[r.OrderSn] = append(of[r.OrderSn], r)
	}
	return of
}

// settled checks that each order has one of two ends, that no money was both kept and given back, and the sums to the
// unit: stock, holdings, and one move for every order that was not paid. It gives how many were paid.
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
		kept := slices.IndexFunc(
			payments[o.OrderSn], func(r paymentRow) bool { return r.State == payment.Kept },
		)
		for i, p := range payments[o.OrderSn] {
			if i != kept {
				require.Equal(a.t, payment.Refunding, p.State)
				require.Contains(
					a.t, []payment.RefundReason{reason, payment.RefundSecond}, p.Reason,
				)
			}
		}
		if o.Status == order.Paid {
			paid++
			require.GreaterOrEqual(a.t, kept, 0, "paid by a payment that is kept")
			require.Zero(a.t, moved[o.OrderSn])
			continue
		}
		require.Equal(a.t, other, o.Status)
		require.Equal(a.t, -1, kept, "no money is kept of an order that is not paid")
		require.Equal(a.t, 1, moved[o.OrderSn], "given back once")
	}
	require.EqualValues(a.t, paid, a.requireBalanced(a.sale.GoodsID))
	return paid
}

// TestRace_PaymentAgainstCancel: of a payment and a cancel at the same moment one wins, and the loser is told so.
func TestRace_PaymentAgainstCancel(t *testing.T) {
	t.Parallel()
	a := newRaceFixture(t)
	var mu sync.Mutex
	paid, cancelled := map[string]bool{}, map[string]bool{}
	a.race(func(i int) []func(context.Context) error {
		sn := a.lines[i].OrderSn
		keep := func(won map[string]bool, err error) error {
			if isRefusal(err) {
				return nil
			}
			mu.Lock()
			defer mu.Unlock()
			won[sn] = err == nil
			return err
		}
		return []func(context.Context) error{
			func(ctx context.Context) error {
				_, err := a.Pay(ctx, a.sale.GoodsID, sn, today.Add(5*time.Minute))
				return keep(paid, err)
			},
			func(ctx context.Context) error {
				_, _, err := a.CancelOne(ctx, a.sale.GoodsID, sn, today.Add(5*time.Minute))
				return keep(cancelled, err)
			},
		}
	})
	for _, l := range a.lines {
		require.NotEqual(
			t, paid[l.OrderSn], cancelled[l.OrderSn], "one wins, never both and never none",
		)
	}
	n := a.requireOutcome(order.Cancelled, order.MoveCancel, payment.RefundCancelled)
	require.Len(t, paid, n)
	require.Len(t, cancelled, *races-n)
	t.Logf(

		"%d duels of pay and cancel: %d paid, %d cancelled, never both; stock %d, held %d, moves %d",
		*races, n, *races-n, *races-n, n, len(a.moves(a.sale.GoodsID)),
	)
}

// TestRace_CallbackAgainstExpiry: a callback that comes three times, another payment of the same order and its expiry, all at
// once. Whoever wins, one payment is kept or none, and each callback was told the same.
func TestRace_CallbackAgainstExpiry(t *testing.T) {
	t.Parallel()
	a := newRaceFixture(t)
	var mu sync.Mutex
	told := map[string]map[payment.State]bool{}
	a.race(func(i int) []func(context.Context) error {
		callback := func(id string) func(context.Context) error {
			id = fmt.Sprintf("%s-%d", id, i)
			return func(ctx context.Context) error {
				p := payment.Payment{
					ID: id, GoodsID: a.sale.GoodsID, OrderSn: a.lines[i].OrderSn,
					Amount: a.sale.Price,
				}
				r, err := a.Receive(ctx, p, a.payBy(i).Add(-time.Millisecond))
				mu.Lock()
				defer mu.Unlock()
				if told[id] == nil {
					told[id] = map[payment.State]bool{}
				}
				told[id][r.State] = err == nil
				return err
			}
		}
		expire := func(ctx context.Context) error {
			_, err := a.ExpireDue(ctx, a.sale.GoodsID, a.payBy(i), 100)
			return err
		}
		return []func(context.Context) error{
			callback("first"), callback("first"), callback("first"), callback("other"), expire,
		}
	})
	n := a.requireOutcome(order.Expired, order.MoveExpire, payment.RefundLate)
	kept, back := 0, 0
	for id, states := range told {
		delete(states, "") // a try that lost its transaction
		require.Len(t, states, 1, "%s was told the same each time", id)
		if states[payment.Kept] {
			kept++
		} else {
			back++
		}
	}
	require.Equal(
		t, []int{n, 2*(*races) - n}, []int{kept, back}, "every payment is kept or goes back",
	)
	t.Logf(

		"%d duels of callbacks and expiry: %d paid, %d expired; of %d payments %d kept and %d to be given back, none both",
		*races, n, *races-n, len(told), kept, back,
	)
}
