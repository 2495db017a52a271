package bench

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
	amqp "github.com/rabbitmq/amqp091-go"

	"flashsale.dev/seckill/internal/app/connect"
	"flashsale.dev/seckill/internal/config"
	"flashsale.dev/seckill/internal/seckill/reservation"
)

const (
	// floorQueue is of the same type as the queues of orders.
	floorQueue = "floor"
	// floorMessages are the unacknowledged messages of the floor's writer.
	floorMessages = 256
	// floorLinger is how long the writer lets messages gather, because large batches cost less.
	floorLinger = 20 * time.Millisecond
	// floorTable has the columns that an order needs.
	floorTable = `CREATE TABLE floor_orders (
		id BIGINT AUTO_INCREMENT PRIMARY KEY, order_sn VARCHAR(64) NOT NULL UNIQUE,
		goods_id BIGINT NOT NULL DEFAULT 1, buyer_id BIGINT NOT NULL, quantity BIGINT NOT NULL,
		status VARCHAR(16) NOT NULL DEFAULT 'created', name VARCHAR(200) NOT NULL,
		phone VARCHAR(200) NOT NULL, created_at BIGINT NOT NULL)
		ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4`
)

// floorOrders puts the floor's orders into Redis and RabbitMQ in the shortest way. All waiting
// orders go together in one call of the bare script and in one message. They are answered when the
// message is confirmed.
type floorOrders struct {
	redis   bareStore
	channel *amqp.Channel
	waiting chan waitingOrder
}

type waitingOrder struct {
	line     reservation.OrderLine
	answered chan error
}

// floorChannel opens the floor's queue.
func floorChannel(spec floorSpec) (*amqp.Channel, error) {
	conn, err := amqp.Dial(spec.AMQP)
	if err != nil {
		return nil, err
	}
	ch, err := conn.Channel()
	if err == nil {
		_, err = ch.QueueDeclare(floorQueue, true, false, false, false,
			amqp.Table{"x-queue-type": "quorum"})
	}
	return ch, err
}

func newFloorOrders(spec floorSpec) (*floorOrders, error) {
	ch, err := floorChannel(spec)
	if err == nil {
		err = ch.Confirm(false)
	}
	o := &floorOrders{
		redis: bareStore{
			connect.RedisOf(config.Redis{Addrs: []string{spec.Redis}}), floorGoods, bareScript,
		},
		channel: ch, waiting: make(chan waitingOrder, 4096),
	}
	go o.drive()
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
		confirm, err := o.send(batch)
		if err == nil && !confirm.Wait() {
			err = errors.New("not confirmed")
		}
		for _, w := range batch {
			w.answered <- err
		}
	}
}

func (o *floorOrders) send(batch []waitingOrder) (*amqp.DeferredConfirmation, error) {
	group := make([]reservation.Reservation, len(batch))
	for i, w := range batch {
		group[i].OrderLine = w.line
	}
	body, err := o.redis.takeGroup(context.Background(), group)
	if err != nil {
		return nil, err
	}
	return o.channel.PublishWithDeferredConfirm("", floorQueue, true, false, amqp.Publishing{
		DeliveryMode: amqp.Persistent, Body: body,
	})
}

// gather waits for one value and takes all others that are ready, once those who send them ran.
func gather[T any](from <-chan T) []T {
	batch := []T{<-from}
	runtime.Gosched()
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

// writeFloor inserts the orders of all waiting messages in one statement, and acknowledges them.
func writeFloor(spec floorSpec) error {
	cfg, err := mysql.ParseDSN(spec.DSN)
	if err != nil {
		return err
	}
	cfg.InterpolateParams = true
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		return err
	}
	db := sql.OpenDB(connector)
	defer db.Close()
	if _, err = db.Exec(floorTable); err != nil {
		return err
	}
	ch, err := floorChannel(spec)
	if err == nil {
		err = ch.Qos(floorMessages, 0, false)
	}
	if err != nil {
		return err
	}
	messages, err := ch.Consume(floorQueue, "", false, false, false, false, nil)
	if err != nil {
		return err
	}
	failed := make(chan error, 1)
	go func() {
		for {
			time.Sleep(floorLinger)
			if err := insertFloor(db, gather(messages)); err != nil {
				failed <- err
				return
			}
		}
	}()
	fmt.Println("ready")
	ended := make(chan error, 1)
	go func() {
		_, err := io.Copy(io.Discard, os.Stdin)
		ended <- err
	}()
	select {
	case err = <-failed:
	case err = <-ended:
	}
	return err
}

func insertFloor(db *sql.DB, messages []amqp.Delivery) error {
	var args []any
	now := time.Now().UnixMilli()
	for _, m := range messages {
		for line := range strings.Lines(string(m.Body)) {
			for field := range strings.SplitSeq(strings.TrimSuffix(line, "\n"), "\t") {
				args = append(args, field)
			}
			args = append(args, now)
		}
	}
	const columns = 6
	_, err := db.Exec(`INSERT INTO floor_orders (order_sn, buyer_id, quantity, name, phone,
		created_at) VALUES `+rows(len(args)/columns, columns), args...)
	if err != nil {
		return err
	}
	return messages[len(messages)-1].Ack(true)
}
