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
// bare script and in one message; when that is confirmed all of them are told.
type carrier struct {
	shelf    bareShelf
	channel  *amqp.Channel
	shard    string
	waiting  chan passenger
	finished chan string // outbox entries that are confirmed
}

type passenger struct {
	line reservation.OrderLine
	told chan error
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
		shelf:   bareShelf{connect.Redis([]string{spec.Redis}, ""), spec.GoodsID, bareScript},
		channel: ch, shard: strconv.Itoa(order.Shard(spec.GoodsID, spec.Shards)),
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
	case err := <-p.told:
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
		id, body, err := c.shelf.takeGroup(context.Background(), group)
		if err != nil {
			tell(aboard, err)
			continue
		}
		confirm, err := c.channel.PublishWithDeferredConfirm("seckill.orders", c.shard, true, false, amqp.Publishing{
			DeliveryMode: amqp.Persistent, ContentType: "application/json", Timestamp: time.Now(), Body: order.EncodeOrders(c.shelf.goodsID, body),
		})
		if err != nil {
			tell(aboard, err)
			continue
		}
		go func() {
			if !confirm.Wait() {
				tell(aboard, errors.New("not confirmed"))
				return
			}
			tell(aboard, nil)
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

func tell(aboard []passenger, err error) {
	for _, p := range aboard {
		p.told <- err
	}
}

// trim removes confirmed entries from the outbox.
func (c *carrier) trim() {
	for {
		_ = c.shelf.client.XDel(context.Background(), fmt.Sprintf("sk:{%d}:outbox", c.shelf.goodsID), gather(c.finished)...).Err()
	}
}
