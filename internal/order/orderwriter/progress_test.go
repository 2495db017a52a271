package orderwriter_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/inventory"
	"flashsale.dev/seckill/internal/order/message"
	"flashsale.dev/seckill/internal/order/orderwriter"
	"flashsale.dev/seckill/internal/ordersn"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/reservation"
	"flashsale.dev/seckill/internal/testing/must"
	"flashsale.dev/seckill/internal/testing/testlog"
)

// slowSale is a database and a Redis in which the commit of one goods waits for release.
type slowSale struct {
	*queue
	goods   int64
	release chan struct{}
	written chan int64
	acked   []uint64
}

// everySale is the goods of a slowSale whose sales are all slow.
const everySale = 0

func newSlowSale(goods int64) *slowSale {
	return &slowSale{
		queue: &queue{deliveries: make(chan order.Delivery)}, goods: goods,
		release: make(chan struct{}), written: make(chan int64, 10),
	}
}

var keys = ordersn.NewKeys([]byte("a secret of the tests, 32 bytes."))

// numbered returns a line of buyer 7 with a number of a goods.
func numbered(goods int64) reservation.OrderLine {
	return reservation.OrderLine{
		OrderSn: keys.Issue(goods, "7", time.Now()).String(), BuyerID: "7", Quantity: 1,
	}
}

// consumer returns a consumer that writes to a store.
func (s *slowSale) consumer(store orderwriter.BatchStore) *orderwriter.Consumer {
	return &orderwriter.Consumer{
		Writer: &orderwriter.Writer{
			Store: store, Redis: s, Keys: keys, Log: slog.New(slog.DiscardHandler),
			Releaser: &inventory.StockReleaser{},
		},
		Source: s, BatchSize: 100, Linger: time.Millisecond,
	}
}

func (s *slowSale) Open(context.Context, int) (order.Stream, error) { return s, nil }
func (s *slowSale) Now(context.Context) (time.Time, error)          { return time.Now(), nil }

func (s *slowSale) WriteBatch(_ context.Context, b orderwriter.Batch) (order.Outcome, error) {
	if s.goods == everySale || b.GoodsID == s.goods {
		<-s.release
	}
	s.written <- b.GoodsID
	return order.Outcome{Created: []string{b.Lines[0].OrderSn}}, nil
}

func (s *slowSale) RecordBarrier(
	_ context.Context, goodsID int64, _ message.Barrier, _ time.Time,
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
// of the in-memory queue wait for that. The barrier between them is recorded after all orders are
// written, and is not acknowledged before.
func TestConsumer_SlowSaleDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlowSale(3)
		stop := run(t, s.consumer(s))
		const barrier = 0
		for i, goods := range []int64{1, 2, 1, barrier, 3, 4, 2, 5} {
			body := must.Get(message.EncodeBarrier(1, message.Barrier{Epoch: 1}))(t)
			if goods != barrier {
				body = message.EncodeOrder(goods, numbered(goods))
			}
			s.deliveries <- order.Delivery{Body: body, Tag: uint64(i + 1)}
		}
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
	})
}

// TestConsumer_StopAcknowledgesNoUnwrittenMessage stops a consumer during a batch of ten sales.
// Eight are being written, and the ninth waits for one of them. The tenth is redelivered to the
// next consumer.
func TestConsumer_StopAcknowledgesNoUnwrittenMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlowSale(everySale)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- s.consumer(s).Run(ctx) }()
		for goods := range int64(10) {
			s.deliveries <- order.Delivery{
				Body: message.EncodeOrder(goods+1, numbered(goods+1)), Tag: uint64(goods + 1),
			}
		}
		time.Sleep(time.Second)
		cancel()
		close(s.release)
		require.NoError(t, <-ended)
		require.Len(t, take(s.written), 9)
		require.NotEmpty(t, s.acked)
		require.EqualValues(t, 9, s.acked[len(s.acked)-1])
	})
}

// refusing is a slowSale whose database has no goods 2 and fails for goods 3.
type refusing struct {
	*slowSale
	lines, failed []string // order numbers; those that failed have their reason
	dead          []order.DeadLetter
}

func (r *refusing) WriteBatch(_ context.Context, b orderwriter.Batch) (order.Outcome, error) {
	switch b.GoodsID {
	case 2:
		return order.Outcome{}, seckill.ErrNoSuchGoods
	case 3:
		return order.Outcome{}, order.ErrTryAgain
	}
	for _, l := range b.Lines {
		r.lines = append(r.lines, l.OrderSn)
	}
	return order.Outcome{}, nil
}

func (r *refusing) WriteFailed(
	_ context.Context, l reservation.OrderLine, d order.DeadLetter, _ time.Time,
) (order.Outcome, error) {
	r.failed = append(r.failed, l.OrderSn+" "+string(d.Reason))
	return order.Outcome{}, nil
}

func (r *refusing) AddDeadLetter(_ context.Context, d order.DeadLetter) error {
	r.dead = append(r.dead, d)
	return nil
}

// TestWriter_ForgedLinesBecomeDeadLetters consumes a message with one line that is right. The other
// lines have a number of another buyer or of another goods, or a quantity that is none. The orders
// of a goods that does not exist fail. The consumer stops although the database fails for a third.
func TestWriter_ForgedLinesBecomeDeadLetters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &refusing{slowSale: newSlowSale(everySale)}
		consumer, log := r.consumer(r), testlog.New()
		consumer.Log = slog.New(slog.NewTextHandler(log, nil))
		stop := run(t, consumer)
		right, buyers, goods, nothing := numbered(1), numbered(1), numbered(2), numbered(1)
		buyers.BuyerID, nothing.Quantity = "8", 0
		forged := []reservation.OrderLine{buyers, goods, nothing}
		entries := [][]byte{message.EncodeLine(right)}
		for _, l := range forged {
			entries = append(entries, message.EncodeLine(l))
		}
		unknown := numbered(2)
		for i, body := range [][]byte{
			message.EncodeOrders(1, message.JoinEntries(entries)), message.EncodeOrder(2, unknown),
			message.EncodeOrder(3, numbered(3)),
		} {
			r.deliveries <- order.Delivery{Body: body, Tag: uint64(i + 1)}
		}
		time.Sleep(time.Second)
		stop()
		require.Equal(t, []string{right.OrderSn}, r.lines)
		require.Equal(t, []string{unknown.OrderSn + " " + string(order.FailedNoSale)}, r.failed)
		require.Len(t, r.dead, len(forged))
		for i, d := range r.dead {
			require.Equal(t, order.FailedMalformed, d.Reason)
			require.Equal(t, forged[i].OrderSn, d.OrderSn)
			require.Equal(t, entries[i+1], d.Body)
			require.NotEmpty(t, d.ID)
			require.NotZero(t, d.FirstSeenAt, "the broker does not report it")
		}
		require.NotContains(t, r.acked, uint64(3))
		warning := log.Next(t)
		require.Contains(t, warning, "SECKILL_ORDER_SECRET")
		require.NotContains(t, warning, "order_sn", "a line for each order")
	})
}

// TestConsumer_HugeMessageIsCut consumes a message that is longer than a row of MySQL may be. It is
// acknowledged, because the queue would deliver it again before all later orders.
func TestConsumer_HugeMessageIsCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &refusing{slowSale: newSlowSale(everySale)}
		stop := run(t, r.consumer(r))
		r.deliveries <- order.Delivery{Body: bytes.Repeat([]byte(`"`), 16<<20), Tag: 1}
		time.Sleep(time.Second)
		stop()
		require.Len(t, r.dead, 1)
		require.Len(t, r.dead[0].Body, 64<<10)
		require.Equal(t, []uint64{1}, r.acked)
	})
}

// locked is a database whose table another session has locked: each attempt waits for the lock.
type locked struct{ *slowSale }

func (l locked) WriteBatch(context.Context, orderwriter.Batch) (order.Outcome, error) {
	time.Sleep(5 * time.Second)
	return order.Outcome{}, fmt.Errorf("%w: lock wait timeout exceeded", order.ErrTryAgain)
}

// TestWriter_LogsTheFirstLongFailure checks that the log soon has the error of a database whose
// attempts are few and slow.
func TestWriter_LogsTheFirstLongFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := locked{newSlowSale(1)}
		consumer, log := l.consumer(l), testlog.New()
		consumer.Log = slog.New(slog.NewTextHandler(log, nil))
		stop := run(t, consumer)
		l.deliveries <- order.Delivery{Body: message.EncodeOrder(1, numbered(1)), Tag: 1}
		time.Sleep(6 * time.Second)
		require.Contains(t, log.Next(t), "lock wait timeout exceeded")
		stop()
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
