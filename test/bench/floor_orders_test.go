package bench

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"flashsale.dev/seckill/internal/app/connect"
	"flashsale.dev/seckill/internal/config"
	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/seckill/reservation"
)

// floorOrders puts the floor's orders into Redis and RabbitMQ in the shortest way. All waiting
// orders go together in one call of the bare script and in one message. They are answered when the
// message is confirmed.
type floorOrders struct {
	redis    bareStore
	channel  *amqp.Channel
	waiting  chan waitingOrder
	finished chan string // outbox entries that are confirmed
}

type waitingOrder struct {
	line     reservation.OrderLine
	answered chan error
}

func newFloorOrders(spec floorSpec) (*floorOrders, error) {
	conn, err := amqp.Dial(spec.AMQP)
	if err != nil {
		return nil, err
	}
	ch, err := conn.Channel()
	if err == nil {
		err = ch.Confirm(false)
	}
	o := &floorOrders{
		redis: bareStore{
			connect.RedisOf(config.Redis{Addrs: []string{spec.Redis}}), spec.GoodsID, bareScript,
		},
		channel: ch, waiting: make(chan waitingOrder, 4096), finished: make(chan string, 4096),
	}
	go o.drive()
	go o.trim()
	return o, err
}

// take returns when the order's message is confirmed.
func (o *floorOrders) take(ctx context.Context, line reservation.OrderLine) error {
	w := waitingOrder{line, make(chan error, 1)}
	o.waiting <- w
	select {
	case err := <-w.answered:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (o *floorOrders) drive() {
	for {
		batch := gather(o.waiting)
		id, confirm, err := o.send(batch)
		go func() {
			if err == nil && !confirm.Wait() {
				err = errors.New("not confirmed")
			}
			for _, w := range batch {
				w.answered <- err
			}
			if err == nil {
				o.finished <- id
			}
		}()
	}
}

func (o *floorOrders) send(batch []waitingOrder) (string, *amqp.DeferredConfirmation, error) {
	group := make([]reservation.Reservation, len(batch))
	for i, w := range batch {
		group[i].OrderLine = w.line
	}
	id, body, err := o.redis.takeGroup(context.Background(), group)
	if err != nil {
		return "", nil, err
	}
	goods := o.redis.goodsID
	confirm, err := o.channel.PublishWithDeferredConfirm("seckill.orders",
		strconv.Itoa(order.Shard(goods, shards)), true, false, amqp.Publishing{
			DeliveryMode: amqp.Persistent, ContentType: "application/json", Timestamp: time.Now(),
			Body: order.EncodeOrders(goods, body),
		})
	return id, confirm, err
}

// gather waits for one value and takes all others that are ready.
func gather[T any](from chan T) []T {
	batch := []T{<-from}
	for len(batch) < reservation.MaxBatch {
		select {
		case next := <-from:
			batch = append(batch, next)
		default:
			return batch
		}
	}
	return batch
}

// trim removes confirmed entries from the outbox.
func (o *floorOrders) trim() {
	key := fmt.Sprintf("sk:{%d}:outbox", o.redis.goodsID)
	for {
		_ = o.redis.client.XDel(context.Background(), key, gather(o.finished)...).Err()
	}
}
