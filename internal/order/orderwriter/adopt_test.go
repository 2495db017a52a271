package orderwriter_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/inventory"
	"flashsale.dev/seckill/internal/order/orderwriter"
	"flashsale.dev/seckill/internal/seckill/reservation"
)

// newEpochs is a MySQL in which an epoch begins before each of the first transactions of two parked
// orders. It is also a Redis that has one unit in the last of these epochs.
type newEpochs struct {
	orderwriter.BatchStore
	adopted []map[string]int64 // by Redis in each epoch
	begun   int
	written []orderwriter.Batch
	failed  []string
}

var parked = []reservation.OrderLine{
	{OrderSn: "a", BuyerID: "7", Quantity: 1}, {OrderSn: "b", BuyerID: "8", Quantity: 1},
}

func (s *newEpochs) Now(context.Context) (time.Time, error) { return time.Now(), nil }

func (s *newEpochs) WriteBatch(
	_ context.Context, b orderwriter.Batch,
) (order.Outcome, error) {
	if s.begun < len(s.adopted) {
		s.begun++
		return order.Outcome{}, &orderwriter.AdoptError{
			Epoch: int64(s.begun), OrderSns: []string{"a", "b"},
		}
	}
	s.written = append(s.written, b)
	return order.Outcome{}, nil
}

func (s *newEpochs) WriteFailed(
	_ context.Context, l reservation.OrderLine, d order.DeadLetter, _ time.Time,
) (order.Outcome, error) {
	s.failed = append(s.failed, l.OrderSn+" "+string(d.Reason))
	return order.Outcome{}, nil
}

func (s *newEpochs) Settle(context.Context, int64, []string) (int, error) { return 0, nil }

func (s *newEpochs) Adopt(
	_ context.Context, _, epoch, _ int64, _ []reservation.OrderLine,
) (map[string]int64, error) {
	return s.adopted[epoch-1], nil
}

func (s *newEpochs) LateGoods(_ context.Context, above int64, _ int) ([]int64, error) {
	if above > 0 {
		return nil, nil
	}
	return []int64{1}, nil
}

func (s *newEpochs) LateOrders(
	context.Context, int64, string, int,
) ([]reservation.OrderLine, error) {
	if len(s.written) > 0 {
		return nil, nil
	}
	return parked, nil
}

// TestAdopter_UnitsOfAnEarlierEpochAreNone checks that a line is written with units of the present
// epoch only. That epoch's load has put the units of the one before on sale again.
func TestAdopter_UnitsOfAnEarlierEpochAreNone(t *testing.T) {
	s := &newEpochs{adopted: []map[string]int64{{"a": 1, "b": 1}, {"a": 1, "b": 0}}}
	adopter := orderwriter.Adopter{
		Writer: &orderwriter.Writer{
			Store: s, Redis: s, Log: slog.New(slog.DiscardHandler),
			Releaser: &inventory.StockReleaser{},
		},
		Late: s,
	}
	require.NoError(t, adopter.RunOnce(t.Context()))
	require.Len(t, s.written, 1)
	require.Equal(t, parked[:1], s.written[0].Lines)
	require.EqualValues(t, 2, s.written[0].Epoch)
	require.Equal(t, []string{"b LOST"}, s.failed)
}
