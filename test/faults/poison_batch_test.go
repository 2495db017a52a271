package faults

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/loadgen/buyer"
	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/test/faults/check"
	"flashsale.dev/seckill/test/rig"
)

// batchMates are the good orders beside one poison message in a batch of 200.
const batchMates = 199

// poisonInABatch has a batch of exactly 200 wait for the consumers, twice: one holds a message that breaks off, the other
// an order that MySQL refuses and that costs the whole batch its transaction.
func poisonInABatch() harm {
	settings := []string{"SECKILL_BATCH_SIZE=200", "SECKILL_BATCH_LINGER=300ms", "SECKILL_LOG_LEVEL=debug"}
	return harm{
		name: "poison-in-a-batch", rig: rig.Options{Env: settings}, shards: 16, over: 12 * time.Second, expect: check.Expect{DeadLetters: 2},
		do: func(t *testing.T, s *scene) {
			s.until(s.between(0.05, 0.25))
			s.poisonBatch(t, func(int64) []byte { return undecodable() })
			s.until(s.between(0.4, 0.6))
			s.poisonBatch(t, func(goods int64) []byte { return s.unwritable(t, goods) })
		},
	}
}

// poisonBatch stops the consumers, fills another sale's queue with 199 orders and the poison in their midst, and starts
// them again: 199 orders must be written in good time, and one dead letter.
func (s *scene) poisonBatch(t *testing.T, poison func(goods int64) []byte) {
	t.Helper()
	goods, dead := s.besides(t, batchMates+100), len(s.DeadLetters(t))
	batches := s.fullBatches(t, goods)
	for _, p := range s.Consumers {
		require.NoError(t, p.Stop(), "%s", p.Log())
	}
	bought := s.buyers(t, goods, batchMates)
	s.waiting(t, goods, batchMates/2)
	s.publish(t, number(t, goods), poison(number(t, goods)))
	s.waiting(t, goods, batchMates)
	for _, p := range s.Consumers {
		p.Start(t)
	}
	require.Eventually(t, func() bool { return s.Facts(t, goods).Orders == batchMates && len(s.DeadLetters(t)) == dead+1 },
		patience, 20*time.Millisecond, "not %d orders and one dead letter: %+v", batchMates, s.Facts(t, goods))
	require.Greater(t, s.fullBatches(t, goods), batches, "they were not one batch of 200")
	for _, told := range (<-bought).Told {
		require.Equal(t, "created", told.Status, "buyer %d", told.BuyerID)
	}
	l := s.Drained(t, goods, patience)
	require.Equal(t, l.Total, l.Available+batchMates, "units leaked: %+v", l)
}

// fullBatches counts the batches of 200 that consumers began to write of a goods' queue, by their logs.
func (s *scene) fullBatches(t *testing.T, goods string) (n int) {
	t.Helper()
	shard := fmt.Sprintf(" shard=%d ", order.Shard(number(t, goods), s.queue))
	for _, p := range s.Consumers {
		n += p.Wrote("writing a batch", shard, "orders=200")
	}
	return n
}

// besides puts up a sale whose orders go to another queue than those of the rush.
func (s *scene) besides(t *testing.T, units int64) string {
	t.Helper()
	queue := order.Shard(s.goodsID(t), s.queue)
	for {
		if goods := s.PutUp(t, units, 1); order.Shard(number(t, goods), s.queue) != queue {
			return goods
		}
	}
}

// buyers has so many buy of a goods, each once, and tells what they were told when all is written.
func (s *scene) buyers(t *testing.T, goods string, n int) <-chan buyer.Report {
	t.Helper()
	bought := make(chan buyer.Report, 1)
	plan := buyer.Plan{
		GoodsID: goods, Buyers: n, AtOnce: n, FirstID: 1 << 41, Token: s.BuyerToken, Patience: patience,
		Bases: []string{s.Base(0), s.Base(1)}, Over: time.Second,
	}
	go func() {
		report, err := buyer.Run(t.Context(), plan)
		if err != nil {
			t.Errorf("the buyers of goods %s: %v", goods, err)
		}
		bought <- report
	}()
	return bought
}

// waiting waits until so many orders of a goods, at least, are in its queue.
func (s *scene) waiting(t *testing.T, goods string, n int64) {
	t.Helper()
	var f rig.RedisFacts
	require.Eventually(t, func() bool {
		var err error
		f, err = s.RedisFacts(t, s.redis, goods)
		return err == nil && f.Pending >= n && f.Outbox == 0
	}, patience, 5*time.Millisecond, "not %d orders in the queue: %+v", n, f)
}
