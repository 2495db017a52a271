package rabbit

import (
	"reflect"

	amqp "github.com/rabbitmq/amqp091-go"

	"flashsale.dev/seckill/internal/order"
)

// reasonDeliveryLimit is the x-first-death-reason of a message that returned to its queue too
// often.
const reasonDeliveryLimit = "delivery_limit"

// newDelivery converts a message and its history in RabbitMQ.
//
// A quorum queue reports earlier deliveries as x-delivery-count; since RabbitMQ 4.3
// x-acquired-count also counts the deliveries that did not fail, and x-delivery-count continues in
// the queue of dead letters. Before 4.3 it restarts at 0 there. x-first-death-queue names the
// original queue, and its delivery limit is the number of deliveries from it.
func newDelivery(d amqp.Delivery, queue string, deliveryLimit int) order.Delivery {
	acquired, continues := d.Headers["x-acquired-count"]
	earlier := max(toInt(d.Headers["x-delivery-count"]), toInt(acquired))
	out := order.Delivery{
		DeliveryInfo: order.DeliveryInfo{
			Origin: queue, Attempts: 1 + earlier, FirstSeenAt: d.Timestamp.UTC(),
		},
		Body: d.Body, Tag: d.DeliveryTag,
	}
	out.TraceParent, _ = d.Headers[traceParentHeader].(string)
	if origin, dead := d.Headers["x-first-death-queue"].(string); dead {
		out.Origin = origin
		if d.Headers["x-first-death-reason"] == reasonDeliveryLimit && !continues {
			out.Attempts += deliveryLimit + 1
		}
	}
	return out
}

// toInt converts an integer of any width that the broker may choose, and returns 0 for the rest.
func toInt(v any) int {
	switch n := reflect.ValueOf(v); {
	case n.CanInt():
		return int(n.Int())
	case n.CanUint():
		return int(n.Uint())
	}
	return 0
}
