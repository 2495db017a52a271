package outbox_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/livesales"
	"flashsale.dev/seckill/internal/order/outbox"
	"flashsale.dev/seckill/internal/seckill"
)

type liveStore = livesales.Store

// many are sales that sell now, all of which Redis can be asked about. One has an outbox entry.
type many struct {
	liveStore
	outbox.Store
	calls, read int
}

func (*many) LiveVersions(context.Context) (map[int64]int64, error) { return nil, nil }

func (*many) LiveGoods(context.Context, []int64) ([]seckill.Sale, error) {
	sales := make([]seckill.Sale, 800)
	for i := range sales {
		sales[i].GoodsID = int64(i) + 1
	}
	return sales, nil
}

func (m *many) WithEntries(_ context.Context, goodsIDs []int64) ([]int64, error) {
	m.calls++
	return goodsIDs[6:7], nil
}

func (m *many) Unconfirmed(
	_ context.Context, goodsID int64, _ time.Duration, _ int64,
) ([]outbox.Entry, error) {
	m.calls++
	if goodsID == 7 {
		m.read++
	}
	return nil, nil
}

// TestRelay_EmptyOutboxesShareACall counts the calls to Redis in ten seconds in which 800 sales may
// have entries and one has some. Each round reads that one.
func TestRelay_EmptyOutboxesShareACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &many{}
		live := &livesales.List{Store: m, Log: slog.New(slog.DiscardHandler)}
		require.NoError(t, live.Refresh(t.Context()))
		relay := outbox.Relay{
			Live: live, Publisher: &outbox.Publisher{Store: m}, Log: slog.New(slog.DiscardHandler),
		}
		ctx, cancel := context.WithTimeout(t.Context(), 9900*time.Millisecond)
		defer cancel()
		require.NoError(t, relay.Run(ctx))
		require.Equal(t, 40, m.read)
		require.Equal(t, 80, m.calls)
	})
}

// twoShards is a list of one sale for each of two shards, and a Redis that has nothing pending.
// While away is set it cannot reach the sale of shard 0, and while down is set no MySQL.
type twoShards struct {
	liveStore
	outbox.Store
	away, down atomic.Bool
}

func (s *twoShards) LiveVersions(context.Context) (map[int64]int64, error) {
	if s.down.Load() {
		return nil, errors.New("MySQL is down")
	}
	return nil, nil
}

func (*twoShards) LiveGoods(context.Context, []int64) ([]seckill.Sale, error) {
	of := make(map[int]seckill.Sale)
	for id := int64(1); len(of) < 2; id++ {
		of[order.Shard(id, 2)] = seckill.Sale{GoodsID: id}
	}
	return []seckill.Sale{of[0], of[1]}, nil
}

func (*twoShards) WithEntries(context.Context, []int64) ([]int64, error) { return nil, nil }

func (s *twoShards) PendingPages(
	_ context.Context, goodsID, _ int64,
) iter.Seq2[[]order.Pending, error] {
	return func(yield func([]order.Pending, error) bool) {
		if s.away.Load() && order.Shard(goodsID, 2) == 0 {
			yield(nil, errors.New("the master is away"))
		}
	}
}

// inNewQueues runs a relay of two shards, and a test that sends new queues to it and receives those
// that the relay has marked.
func inNewQueues(
	t *testing.T, test func(t *testing.T, s *twoShards, queues chan<- int, marked <-chan int),
) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		servers, queues, marked := &twoShards{}, make(chan int, 4), make(chan int, 4)
		relay := outbox.Relay{
			Live:      &livesales.List{Store: servers, Log: slog.New(slog.DiscardHandler)},
			Publisher: &outbox.Publisher{Store: servers},
			Queues: outbox.NewQueues{
				Shard: queues, Shards: 2,
				Mark: func(_ context.Context, shard int) error {
					marked <- shard
					return nil
				},
			},
			Log: slog.New(slog.DiscardHandler),
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- relay.Run(ctx) }()
		test(t, servers, queues, marked)
		cancel()
		require.NoError(t, <-ended)
	})
}

// TestRelay_UnreachableSaleDelaysNoOtherShard checks that the relay republishes to the new queues
// of other shards while a master is away, and to that of its sale later.
func TestRelay_UnreachableSaleDelaysNoOtherShard(t *testing.T) {
	inNewQueues(t, func(t *testing.T, s *twoShards, queues chan<- int, marked <-chan int) {
		s.away.Store(true)
		queues <- 0
		queues <- 1
		time.Sleep(time.Minute)
		require.Len(t, marked, 1)
		require.Equal(t, 1, <-marked)
		s.away.Store(false)
		time.Sleep(time.Minute)
		require.Len(t, marked, 1)
		require.Equal(t, 0, <-marked)
	})
}

// TestRelay_MarksNoQueueWithoutMySQL checks that a queue is not marked while the relay cannot know
// all sales of its shard: one may have been exposed since the last list.
func TestRelay_MarksNoQueueWithoutMySQL(t *testing.T) {
	inNewQueues(t, func(t *testing.T, s *twoShards, queues chan<- int, marked <-chan int) {
		s.down.Store(true)
		queues <- 1
		time.Sleep(time.Minute)
		require.Empty(t, marked)
		s.down.Store(false)
		time.Sleep(time.Minute)
		require.Equal(t, 1, <-marked)
	})
}

// TestRelay_QueueThatIsDownIsNoWarning checks a relay which reads of a new queue before its
// publisher is connected, as at each first start. It republishes later without a warning. Other
// problems are warnings.
func TestRelay_QueueThatIsDownIsNoWarning(t *testing.T) {
	for problem, warned := range map[error]bool{
		fmt.Errorf("mark: %w", order.ErrQueueDown): false, errors.New("a bug"): true,
	} {
		synctest.Test(t, func(t *testing.T) {
			servers, queues, tries := &twoShards{}, make(chan int), 0
			var log bytes.Buffer
			relay := outbox.Relay{
				Live:      &livesales.List{Store: servers, Log: slog.New(slog.DiscardHandler)},
				Publisher: &outbox.Publisher{Store: servers},
				Queues: outbox.NewQueues{
					Shard: queues, Shards: 2,
					Mark: func(context.Context, int) error {
						if tries++; tries == 1 {
							return problem
						}
						return nil
					},
				},
				Log: slog.New(slog.NewTextHandler(&log, nil)),
			}
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error)
			go func() { ended <- relay.Run(ctx) }()
			queues <- 0
			time.Sleep(time.Minute)
			cancel()
			require.NoError(t, <-ended)
			require.Equal(t, 2, tries)
			require.Equal(t, warned, log.Len() > 0, log.String())
		})
	}
}
