package faults

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/testing/buyers"
	"flashsale.dev/seckill/internal/testing/installation"
	"flashsale.dev/seckill/test/faults/check"
)

// goodOrders is the number of good orders in a batch of 200 with one poison message.
const goodOrders = 199

// poisonInABatch gives consumers a batch of exactly 200 messages, twice. One batch has a truncated
// message. The other has an order that MySQL rejects with the whole transaction.
func poisonInABatch() fault {
	settings := []string{
		"SECKILL_BATCH_SIZE=200", "SECKILL_BATCH_LINGER=300ms", "SECKILL_LOG_LEVEL=debug",
	}
	return fault{
		name: "poison-in-a-batch", options: installation.Options{Env: settings}, shards: 16,
		spread: 12 * time.Second, allow: check.Allowance{DeadLetters: 2},
		inject: func(t *testing.T, r *run) {
			r.untilPromised(r.random(0.05, 0.25))
			r.poisonBatch(t, func(int64) []byte { return undecodable() })
			r.untilPromised(r.random(0.4, 0.6))
			r.poisonBatch(t, func(goods int64) []byte { return r.unwritable(t, goods) })
		},
	}
}

// poisonBatch stops the consumers, fills another sale's queue with 199 orders and one poison
// message among them, and starts the consumers. All orders must be written, and there must be one
// more dead letter.
func (r *run) poisonBatch(t *testing.T, poison func(goods int64) []byte) {
	goods := r.saleOfQueue(t, goodOrders+100, false)
	dead, batches := len(r.DeadLetters(t)), r.fullBatches(t, goods)
	for _, p := range r.Consumers {
		require.NoError(t, p.Stop(), "%s", p.Log())
	}
	report := r.startBuyers(t, goods, goodOrders)
	r.awaitQueued(t, goods, goodOrders/2)
	r.publish(t, installation.Number(t, goods), poison(installation.Number(t, goods)))
	r.awaitQueued(t, goods, goodOrders)
	start(t, r.Consumers)
	require.Eventually(t, func() bool {
		return r.Facts(t, goods).Orders == goodOrders && len(r.DeadLetters(t)) == dead+1
	}, patience, 20*time.Millisecond, "not %d orders and one dead letter: %+v",
		goodOrders, r.Facts(t, goods))
	require.Greater(t, r.fullBatches(t, goods), batches, "the messages were not one batch of 200")
	for _, b := range (<-report).Results {
		require.Equal(t, "created", b.Status, "buyer %d", b.BuyerID)
	}
	l := r.Drained(t, goods, patience)
	require.Equal(t, l.Total, l.Available+goodOrders, "units leaked: %+v", l)
}

// fullBatches counts, in the consumers' logs, the batches of 200 from a goods' queue.
func (r *run) fullBatches(t *testing.T, goods string) (n int) {
	shard := fmt.Sprintf(" shard=%d ", order.Shard(installation.Number(t, goods), r.shards))
	for _, p := range r.Consumers {
		n += p.CountLogLines("writing a batch", shard, "orders=200")
	}
	return n
}

// startBuyers sends n buyers for a goods, and returns their report once their orders are written.
func (r *run) startBuyers(t *testing.T, goods string, n int) <-chan buyers.Report {
	bought := make(chan buyers.Report, 1)
	plan := buyers.Plan{
		GoodsID: goods, Buyers: n, Concurrency: n, FirstID: 1 << 41, Token: r.BuyerToken,
		Patience: patience, Bases: []string{r.Base(0), r.Base(1)}, Spread: time.Second,
	}
	go func() {
		report, err := buyers.Run(t.Context(), plan)
		if err != nil {
			t.Errorf("the buyers of goods %s: %v", goods, err)
		}
		bought <- report
	}()
	return bought
}

// awaitQueued waits until at least n orders of a goods are in its queue. An order whose confirm
// came late is in the queue and in the outbox: the relay, which would remove it, is stopped with
// the consumers.
func (r *run) awaitQueued(t *testing.T, goods string, n int64) {
	t.Helper()
	var reserved time.Time // when all n were
	require.Eventually(t, func() bool {
		f, err := r.RedisFacts(t, r.redis, goods)
		if err != nil || f.Pending < n {
			return false
		}
		if reserved.IsZero() {
			reserved = time.Now()
		}
		return f.Outbox == 0 || time.Since(reserved) > 3*time.Second
	}, patience, 5*time.Millisecond, "not %d orders in the queue of goods %s", n, goods)
}
