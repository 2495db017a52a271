package rabbit

import (
	amqp "github.com/rabbitmq/amqp091-go"

	"flashsale.dev/seckill/internal/order"
)

// reasonLimit is x-first-death-reason of a message that was handed out more often than its queue allows.
const reasonLimit = "delivery_limit"

// delivery reads what RabbitMQ says of a message: x-delivery-count, how often a quorum queue has had it back; and of a dead
// letter x-first-death-queue and x-first-death-reason ("delivery_limit", "rejected", "expired" or "maxlen").
// The count of a dead letter begins anew; what killed it says how often it had been handed out before.
func delivery(d amqp.Delivery, queue string, limit int) order.Delivery {
	out := order.Delivery{
		Body: d.Body, Tag: d.DeliveryTag, Origin: queue, Redelivered: d.Redelivered,
		Attempts: 1 + count(d.Headers["x-delivery-count"]), FirstSeen: d.Timestamp.UTC(),
	}
	out.Mark, _ = d.Headers[markHeader].(string)
	if origin, dead := d.Headers["x-first-death-queue"].(string); dead {
		out.Origin = origin
		out.Reason, _ = d.Headers["x-first-death-reason"].(string)
		if out.Reason == reasonLimit {
			out.Attempts = limit + 1
		}
	}
	return out
}

// count reads an integer of whatever width the broker chose.
func count(v any) int {
	switch n := v.(type) {
	case int64:
		return int(n)
	case int32:
		return int(n)
	case int16:
		return int(n)
	case uint8:
		return int(n)
	case int8:
		return int(n)
	}
	return 0
}
