package orderwriter_test

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/inventory"
	"flashsale.dev/seckill/internal/order/orderwriter"
	"flashsale.dev/seckill/internal/ordersn"
	"flashsale.dev/seckill/internal/seckill/reservation"
	"flashsale.dev/seckill/internal/testing/must"
)

// slowSale is a database and a Redis in which the commit of one goods waits for release.
type slowSale struct {
	*queue
	goods   int64
	release chan struct{}
	written chan int64
	acked   []uint64
}

func (s *slowSale) Open(context.Context, int) (order.Stream, error) { return s, nil }
func (s *slowSale) Now(context.Context) (time.Time, error)          { return time.Now(), nil }

func (s *slowSale) WriteBatch(_ context.Context, b orderwriter.Batch) (order.Outcome, error) {
	if b.GoodsID == s.goods {
		<-s.release
	}
	s.written <- b.GoodsID
	return order.Outcome{Created: []string{b.Lines[0].OrderSn}}, nil
}

func (s *slowSale) RecordBarrier(
	_ context.Context, goodsID int64, _ order.Barrier, _ time.Time,
) error {
	s.written <- -goodsID
	return nil
}

func (s *slowSale) Settle(context.Context, int64, []string) (int, error) { return 1, nil }

func (s *slowSale) Adopt(
	context.Context, int64, int64, int64, []reservation.OrderLine,
) (map[string]int64, error) {
	panic("no order is late")
}

func (s *slowSale) Ack(tag uint64) error {
	s.acked = append(s.acked, tag)
	return nil
}

// TestConsumer_SlowSaleDelaysNoOther consumes a batch of five sales whose third is slow. The others
// are written meanwhile. The messages before the slow sale's are acknowledged, because publishers
// of the in-memory queue wait for that. The barrier is recorded after all orders are written.
func TestConsumer_SlowSaleDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		keys := ordersn.NewKeys([]byte("a secret of the tests, 32 bytes."))
		s := &slowSale{
			queue: &queue{deliveries: make(chan order.Delivery)}, goods: 3,
			release: make(chan struct{}), written: make(chan int64, 10),
		}
		consumer := &orderwriter.Consumer{
			Writer: &orderwriter.Writer{
				Store: s, Redis: s, Keys: keys, Log: slog.New(slog.DiscardHandler),
				Releaser: &inventory.StockReleaser{},
			},
			Source: s, BatchSize: 100, Linger: time.Millisecond,
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- consumer.Run(ctx) }()
		for i, goods := range []int64{1, 2, 1, 3, 4, 2, 5} {
			line := reservation.OrderLine{
				OrderSn: keys.Issue(goods, "7", time.Now()).String(), BuyerID: "7", Quantity: 1,
			}
			s.deliveries <- order.Delivery{
				Body: order.EncodeOrder(goods, line), Tag: uint64(i + 1),
			}
		}
		barrier := must.Get(order.EncodeBarrier(1, order.Barrier{Epoch: 1}))(t)
		s.deliveries <- order.Delivery{Body: barrier, Tag: 8}
		time.Sleep(time.Second)
		synctest.Wait()
		require.ElementsMatch(t, []int64{1, 2, 4, 5}, take(s.written))
		require.NotEmpty(t, s.acked)
		require.EqualValues(t, 3, s.acked[len(s.acked)-1])
		close(s.release)
		time.Sleep(time.Second)
		synctest.Wait()
		require.Equal(t, []int64{3, -1}, take(s.written))
		require.EqualValues(t, 8, s.acked[len(s.acked)-1])
		require.IsIncreasing(t, s.acked)
		stop()
		require.NoError(t, <-ended)
	})
}

// take returns what a channel holds.
func take(c <-chan int64) (all []int64) {
	for {
		select {
		case n := <-c:
			all = append(all, n)
		default:
			return all
		}
	}
}
