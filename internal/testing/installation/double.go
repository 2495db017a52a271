package installation

import (
	"strconv"
	"sync/atomic"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testing/must"
)

// copied marks a message that DoubleMessages sent, so it is not duplicated again.
const copied = "x-copied"

// DoubleMessages sends every order message a second time until the test ends. The copies are often
// in another order. It returns the counter of the copies.
func (r *Installation) DoubleMessages(t testing.TB) *atomic.Int64 {
	conn := must.Get(amqp.Dial(r.AMQP))(t)
	t.Cleanup(func() { _ = conn.Close() })
	ch := must.Get(conn.Channel())(t)
	q := must.Get(ch.QueueDeclare("", false, true, true, false, nil))(t)
	for shard := range shards {
		require.NoError(t, ch.QueueBind(q.Name, strconv.Itoa(shard), "seckill.orders", false, nil))
	}
	deliveries := must.Get(ch.ConsumeWithContext(t.Context(), q.Name, "", true, true, false, false,
		nil))(t)
	var sent atomic.Int64
	go func() {
		for d := range deliveries {
			if _, again := d.Headers[copied]; again {
				continue
			}
			m := amqp.Publishing{
				Headers: amqp.Table{copied: true}, Body: d.Body,
				DeliveryMode: amqp.Persistent, ContentType: d.ContentType,
			}
			if ch.PublishWithContext(t.Context(), d.Exchange, d.RoutingKey, false, false,
				m) == nil {
				sent.Add(1)
			}
		}
	}()
	return &sent
}
