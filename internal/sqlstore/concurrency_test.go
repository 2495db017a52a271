package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"flashsale.dev/seckill/internal/apierror"
	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/orderwriter"
	"flashsale.dev/seckill/internal/order/rebuild"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/reservation"
)

// retry repeats a step that returns ErrTryAgain, up to 100 times, as the callers do.
func retry(ctx context.Context, step func() error) error {
	for try := 1; ; try++ {
		err := step()
		if !errors.Is(err, order.ErrTryAgain) || ctx.Err() != nil {
			return err
		}
		if try == 100 {
			return fmt.Errorf("lost 100 times: %w", err)
		}
	}
}

// errorOf returns a call's error without its value.
func errorOf[T any](_ T, err error) error { return err }

// isRefusal reports whether err refuses a step because another caller changed the order first.
func isRefusal(err error) bool {
	return apierror.ReasonOf(err) == apierror.Conflict || errors.Is(err, order.ErrNoSuchOrder)
}

// TestStore_ConcurrentUseKeepsExactSums runs everything that changes units concurrently on one hot
// row. It runs four writers of overlapping batches, cancellations, payments and expiries.
// Afterwards the sums must be exact, and each unpaid order must have returned its units once.
func (h fixture) TestStore_ConcurrentUseKeepsExactSums(t *testing.T) {
	const buyers, perBuyer, units = 150, 2, 200
	sale := h.exposed(units, perBuyer)
	var lines []reservation.OrderLine
	for i := range buyers * (perBuyer + 1) {
		lines = append(lines, h.line(sale, int64(i%buyers+1), 1))
	}
	r := &concurrentUse{fixture: h, sale: sale, lines: lines}
	writers, ctx := errgroup.WithContext(t.Context())
	for seed := range uint64(4) {
		writers.Go(func() error { return r.writeAll(ctx, rand.New(rand.NewPCG(seed, 1))) })
	}
	over := make(chan struct{})
	var others errgroup.Group
	for seed, step := range []func(*rand.Rand) error{
		r.cancel, r.pay, r.expire, r.cancel, r.checkLedger,
	} {
		others.Go(func() error { return until(over, rand.New(rand.NewPCG(uint64(seed), 2)), step) })
	}
	err := writers.Wait()
	close(over)
	require.NoError(t, errors.Join(err, others.Wait()))

	h.requireBalanced(sale.GoodsID)
	require.Len(t, h.all(sale.GoodsID), len(lines), "every order number has a row")
	r.requireMoves()
}

type concurrentUse struct {
	fixture
	sale    seckill.Sale
	lines   []reservation.OrderLine
	written atomic.Int64 // all lines below this index have been sent at least once
}

// writeAll sends all lines in groups of random sizes. Each group begins inside the group before.
func (r *concurrentUse) writeAll(ctx context.Context, rnd *rand.Rand) error {
	for from := 0; from < len(r.lines); {
		to := min(from+1+rnd.IntN(40), len(r.lines))
		b := batchOf(r.sale.GoodsID, r.lines[max(from-rnd.IntN(10), 0):to]...)
		b.PayBy = today.Add(time.Duration(rnd.IntN(60)) * time.Minute)
		err := retry(ctx, func() error { return errorOf(r.WriteBatch(ctx, b)) })
		if err != nil {
			return err
		}
		r.written.Store(int64(to))
		from = to
	}
	return nil
}

func until(over <-chan struct{}, rnd *rand.Rand, step func(*rand.Rand) error) error {
	for {
		select {
		case <-over:
			return nil
		default:
			if err := step(rnd); err != nil && !isRefusal(err) {
				return err
			}
		}
	}
}

func (r *concurrentUse) any(rnd *rand.Rand) string {
	return r.lines[rnd.IntN(max(int(r.written.Load()), 1))].OrderSn
}

func (r *concurrentUse) cancel(rnd *rand.Rand) error {
	sn := r.any(rnd)
	return retry(r.t.Context(), func() error {
		return errorOf(r.CancelOne(r.sale.GoodsID, sn, today.Add(time.Minute)))
	})
}

func (r *concurrentUse) pay(rnd *rand.Rand) error {
	sn := r.any(rnd)
	return retry(r.t.Context(), func() error {
		return errorOf(r.Pay(r.sale.GoodsID, sn, today))
	})
}

func (r *concurrentUse) expire(rnd *rand.Rand) error {
	now := today.Add(time.Duration(rnd.IntN(30)) * time.Minute)
	return retry(r.t.Context(), func() error {
		return errorOf(r.ExpireDue(r.t.Context(), r.sale.GoodsID, now, 1+rnd.IntN(20)))
	})
}

// checkLedger checks the ledger's equation, which must always hold.
func (r *concurrentUse) checkLedger(*rand.Rand) error {
	return retry(r.t.Context(), func() error {
		d, err := r.Database(r.t.Context(), r.sale.GoodsID)
		if err == nil && d.Stock+d.Active != r.sale.Total {
			return fmt.Errorf("in the rush: stock %d and active %d of %d", d.Stock, d.Active,
				r.sale.Total)
		}
		return err
	})
}

// requireMoves requires exactly one stock move for every order that ended unpaid.
func (r *concurrentUse) requireMoves() {
	r.t.Helper()
	want, kinds := map[string]order.MoveKind{}, map[order.Status]order.MoveKind{
		order.Cancelled: order.MoveCancel, order.Expired: order.MoveExpire,
		order.Failed: order.MoveFail,
	}
	for _, o := range r.all(r.sale.GoodsID) {
		if kind, ended := kinds[o.Status]; ended {
			want[o.OrderSn] = kind
		}
	}
	moves := r.moves(r.sale.GoodsID)
	got := map[string]order.MoveKind{}
	for _, m := range moves {
		got[m.OrderSn] = m.Kind
	}
	require.Len(r.t, moves, len(got), "each order has one stock move")
	require.Equal(r.t, want, got)
}

// TestBeginEpoch_ConcurrentRebuildsAreFenced checks that only the rebuild with the newest token
// begins an epoch, which starts from whole batches. Its orders are read only until the next begins.
func (h fixture) TestBeginEpoch_ConcurrentRebuildsAreFenced(t *testing.T) {
	sale := h.exposed(1000, 1)
	var began atomic.Int64
	var g errgroup.Group
	for range 6 {
		g.Go(func() error {
			return retry(t.Context(), func() error {
				token, err := h.NextRebuildToken(t.Context(), sale.GoodsID)
				if err != nil {
					return err
				}
				begun, err := h.BeginEpoch(t.Context(), sale.GoodsID, token.Number, at(today))
				switch {
				case errors.Is(err, rebuild.ErrFenced):
					return nil
				case err != nil:
					return err
				}
				began.Add(1)
				if err = h.readHoldings(begun); errors.Is(err, rebuild.ErrFenced) {
					return nil
				}
				return err
			})
		})
	}
	g.Go(func() error {
		for lines := range slices.Chunk(h.lines(sale, 400), 20) {
			b := batchOf(sale.GoodsID, lines...)
			err := retry(t.Context(), func() error { return h.adoptAndWrite(b) })
			if err != nil {
				return err
			}
		}
		return nil
	})
	require.NoError(t, g.Wait())
	require.Equal(t, sale.Epoch+began.Load(), h.sale(sale.GoodsID).Epoch)
	require.EqualValues(t, 400, h.requireBalanced(sale.GoodsID))
}

// adoptAndWrite adopts and writes lines of an older epoch, as the consumer does.
func (h fixture) adoptAndWrite(b orderwriter.Batch) error {
	_, err := h.WriteBatch(h.t.Context(), b)
	adopt, ok := errors.AsType[*orderwriter.AdoptError](err)
	if !ok {
		return err
	}
	b.Epoch, b.Adopted = adopt.Epoch, make(map[string]int64)
	for _, sn := range adopt.OrderSns {
		b.Adopted[sn] = 1
	}
	if _, err = h.WriteBatch(h.t.Context(), b); errors.As(err, &adopt) {
		return order.ErrTryAgain // another epoch has begun since
	}
	return err
}

// readHoldings reads the orders of an epoch. It expects those of whole batches, and at least those
// that had taken units when the epoch began. The writers of this test write more, without a gate.
func (h fixture) readHoldings(sale seckill.Sale) error {
	var held int64
	for page, err := range h.HoldingPages(h.t.Context(), sale.GoodsID, sale.Epoch, today) {
		if err != nil {
			return err
		}
		for _, o := range page {
			held += o.Quantity
		}
	}
	if sold := sale.Total - sale.Stock; sold%20 != 0 || held < sold {
		return fmt.Errorf("epoch %d: sold %d, held %d", sale.Epoch, sold, held)
	}
	return nil
}
