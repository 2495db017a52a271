package queuesuite

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/order"
)

// Queue is the pair under test. It must be empty and have at least two shards.
type Queue struct {
	order.Publisher
	order.Source
}

// Run runs the tests. open makes a new, empty queue for each test and ends it at cleanup.
func Run(t *testing.T, open func(t *testing.T) Queue) {
	for name, test := range map[string]func(*testing.T, Queue){
		"deliveries keep the order of publishing":                keepsOrder,
		"an ack covers all deliveries before it":                 acksMultiple,
		"a closed stream's messages are redelivered in order":    redeliversInOrder,
		"one of two streams gets the deliveries, then the other": oneActiveStream,
		"concurrent publishes are all confirmed and delivered":   manyAtOnce,
		"a goods keeps to its shard":                             keepsShards,
		"an ended context ends publish and open":                 contextEnds,
		"a shard that does not exist is an error":                noSuchShard,
		"a body of 300 KB keeps its bytes":                       keepsBytes,
	} {
		t.Run(name, func(t *testing.T) { test(t, open(t)) })
	}
}

// goods is the sale that most tests publish for.
const goods = int64(42)

// keepsOrder publishes 100 messages and requires their deliveries in the same order.
func keepsOrder(t *testing.T, q Queue) {
	c := consume(t, q, order.Shard(goods, q.Shards()))
	want := messages(100)
	confirmed := publish(t, q, goods, want)
	require.Equal(t, want, c.takeAndAck(len(want)))
	confirmed()
}

// acksMultiple acknowledges the third of five deliveries. The next stream must get only the last
// two.
func acksMultiple(t *testing.T, q Queue) {
	confirmed := publishAll(t, q, 5)
	c := consume(t, q, order.Shard(goods, q.Shards()))
	first := c.take(5)
	require.NoError(t, c.stream.Ack(first[2].Tag))
	require.NoError(t, c.stream.Close())
	c = consume(t, q, order.Shard(goods, q.Shards()))
	require.Equal(t, bodies(first[3:]), c.takeAndAck(2))
	confirmed()
}

// redeliversInOrder requires that a second stream gets the messages of a closed stream again, in
// order. Each delivery must count the earlier ones and keep the origin and the publish time,
// because dead letters report them.
func redeliversInOrder(t *testing.T, q Queue) {
	began := time.Now().Truncate(time.Second)
	confirmed := publishAll(t, q, 50)
	c := consume(t, q, order.Shard(goods, q.Shards()))
	first := c.take(20)
	for _, d := range first {
		require.Equal(t, 1, d.Attempts)
		require.NotEmpty(t, d.Origin)
		require.False(t, d.FirstSeenAt.Before(began), "published at %v, after %v", d.FirstSeenAt,
			began)
	}
	require.NoError(t, c.stream.Close())
	require.NoError(t, c.stream.Close(), "a second Close does nothing")
	c = consume(t, q, order.Shard(goods, q.Shards()))
	second := c.take(50)
	require.Equal(t, bodies(first), bodies(second[:20]))
	for i, d := range first {
		d.Attempts = 2
		require.Equal(t, d.DeliveryInfo, second[i].DeliveryInfo,
			"the second delivery counts the first and keeps its origin")
	}
	byTag := func(a, b order.Delivery) int { return cmp.Compare(a.Tag, b.Tag) }
	require.True(t, slices.IsSortedFunc(second, byTag))
	require.NoError(t, c.stream.Ack(second[49].Tag))
	confirmed()
}

// oneActiveStream requires that only one of two streams gets deliveries. Two concurrent writers
// would break the order within a shard.
func oneActiveStream(t *testing.T, q Queue) {
	shard := order.Shard(goods, q.Shards())
	a := consume(t, q, shard)
	b := consume(t, q, shard)
	confirmed := publishAll(t, q, 10)
	held := a.take(10)
	select {
	case d := <-b.stream.Deliveries():
		t.Fatalf("the second stream got %q too", d.Body)
	default:
	}
	require.NoError(t, a.stream.Ack(held[3].Tag))
	require.NoError(t, a.stream.Close())
	require.Equal(t, bodies(held[4:]), b.takeAndAck(6))
	confirmed()
}

func manyAtOnce(t *testing.T, q Queue) {
	c := consume(t, q, order.Shard(goods, q.Shards()))
	confirmed := publishAll(t, q, 1000)
	got := c.takeAndAck(1000)
	confirmed()
	slices.Sort(got)
	require.Len(t, slices.Compact(got), 1000)
}

// keepsShards requires that the queue uses order.Shard. Producers and consumers must agree on the
// shard of a goods.
func keepsShards(t *testing.T, q Queue) {
	for id := range int64(20) {
		shard := order.Shard(id, q.Shards())
		c := consume(t, q, shard)
		confirmed := publish(t, q, id, []string{fmt.Sprint(id)})
		require.Equal(t, []string{fmt.Sprint(id)}, c.takeAndAck(1))
		confirmed()
		require.NoError(t, c.stream.Close())
	}
}

func contextEnds(t *testing.T, q Queue) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, q.Publish(ctx, goods, []byte("late")), context.Canceled)
	_, err := q.Open(ctx, 0)
	require.ErrorIs(t, err, context.Canceled)
}

func noSuchShard(t *testing.T, q Queue) {
	for _, n := range []int{-1, q.Shards()} {
		_, err := q.Open(t.Context(), n)
		require.Error(t, err)
	}
}

func keepsBytes(t *testing.T, q Queue) {
	all := make([]byte, 300<<10) // larger than one AMQP frame
	for i := range all {
		all[i] = byte(i)
	}
	c := consume(t, q, order.Shard(goods, q.Shards()))
	confirmed := publish(t, q, goods, []string{string(all)})
	require.Equal(t, []string{string(all)}, c.takeAndAck(1))
	confirmed()
}
