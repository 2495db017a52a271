package bench

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"flashsale.dev/seckill/internal/app/connect"
	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/seckill/reservation"
)

// carrier takes the floor's orders to Redis and RabbitMQ in groups, the shortest way: whoever is there goes on one call of the
// bare script and in one message; when that is confirmed all of them are answered.
type carrier struct {
	redisStore bareStore
	channel    *amqp.Channel
	shard      string
	waiting    chan passenger
	finished   chan string // outbox entries that are confirmed
}

type passenger struct {
	line     reservation.OrderLine
	answered chan error
}

func newCarrier(spec floorSpec) (*carrier, error) {
	conn, err := amqp.Dial(spec.AMQP)
	if err != nil {
		return nil, err
	}
	ch, err := conn.Channel()
	if err != nil {
		return nil, err
	}
	if err := ch.Confirm(false); err != nil {
		return nil, err
	}
	c := &carrier{
		redisStore: bareStore{connect.Redis([]string{spec.Redis}, ""), spec.GoodsID, bareScript},
		channel:    ch, shard: strconv.Itoa(order.Shard(spec.GoodsID, spec.Shards)),
		waiting: make(chan passenger, 4096), finished: make(chan string, 4096),
	}
	go c.drive()
	go c.trim()
	return c, nil
}

// carry returns when the order's message is confirmed.
func (c *carrier) carry(ctx context.Context, line reservation.OrderLine) error {
	p := passenger{line, make(chan error, 1)}
	c.waiting <- p
	select {
	case err := <-p.answered:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (c *carrier) drive() {
	for {
		aboard := gather(c.waiting)
		group := make([]reservation.Reservation, len(aboard))
		for i, p := range aboard {
			group[i].OrderLine = p.line
		}
		id, body, err := c.redisStore.takeGroup(context.Background(), group)
		if err != nil {
			note(aboard, err)
			continue
		}
		confirm, err := c.channel.PublishWithDeferredConfirm("seckill.orders", c.shard, true, false, amqp.Publishing{
			DeliveryMode: amqp.Persistent, ContentType: "application/json", Timestamp: time.Now(), Body: order.EncodeOrders(c.redisStore.goodsID, body),
		})
		if err != nil {
			note(aboard, err)
			continue
		}
		go func() {
			if !confirm.Wait() {
				note(aboard, errors.New("not confirmed"))
				return
			}
			note(aboard, nil)
			c.finished <- id
		}()
	}
}

// gather waits for one and takes whoever else is there.
func gather[T any](from chan T) []T {
	group := []T{<-from}
	for len(group) < reservation.MaxBatch {
		select {
		case next := <-from:
			group = append(group, next)
		default:
			return group
		}
	}
	return group
}

func note(aboard []passenger, err error) {
	for _, p := range aboard {
		p.answered <- err
	}
}

// trim removes confirmed entries from the outbox.
func (c *carrier) trim() {
	for {
		_ = c.redisStore.client.XDel(context.Background(), fmt.Sprintf("sk:{%d}:outbox", c.redisStore.goodsID), gather(c.finished)...).Err()
	}
}
