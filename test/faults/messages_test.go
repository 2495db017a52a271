package faults

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/config"
	"flashsale.dev/seckill/internal/loadgen/buyer"
	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/message"
	"flashsale.dev/seckill/internal/ordersn"
	"flashsale.dev/seckill/internal/seckill/reservation"
	"flashsale.dev/seckill/internal/testing/buyers"
	"flashsale.dev/seckill/internal/testing/installation"
	"flashsale.dev/seckill/internal/testing/must"
	"flashsale.dev/seckill/test/faults/check"
)

// messageFaults repeat, delay or corrupt messages of orders.
func messageFaults() []fault {
	return []fault{
		{name: "doubled-messages", inject: func(t *testing.T, r *run) {
			doubled := r.DoubleMessages(t)
			r.untilPromised(1)
			require.Positive(t, doubled.Load(), "no message was doubled")
		}},
		{name: "doubled-and-consumer-killed", inject: func(t *testing.T, r *run) {
			r.DoubleMessages(t)
			killTenTimes(t, r, r.Consumers)
		}},
		{name: "late-orders", inject: publishLateOrders},
		{name: "poison", allow: check.Allowance{DeadLetters: 2}, inject: midway(publishPoison)},
		poisonInABatch(),
	}
}

// defaultShards is the default of SECKILL_ORDER_SHARDS.
const defaultShards = 4

// The buyers of messages that faults publish.
const lateBuyer, poisonBuyer = 1 << 40, 1<<40 + 2

// publishLateOrders publishes an order of the first epoch when the second has begun and its gate is
// open. It publishes another while Redis is dead again. The late order must not block the queue,
// for which the next rebuild waits.
func publishLateOrders(t *testing.T, r *run) {
	r.untilPromised(r.random(0.1, 0.3))
	killRedis(t, r)
	r.awaitRecovery(t)
	r.publish(t, r.goodsID(t), r.lateMessage(t, lateBuyer))
	r.untilPromised(r.random(0.4, 0.6))
	master := r.master(t)
	require.NoError(t, master.Kill())
	r.publish(t, r.goodsID(t), r.lateMessage(t, lateBuyer+1))
	require.NoError(t, master.Restart(t.Context()))
}

// lateMessage is the message of an order of epoch 1, for a buyer outside the run's own.
func (r *run) lateMessage(t *testing.T, id int64) []byte {
	r.addBuyer(buyer.Result{BuyerID: id, Paths: 1})
	return r.message(t, r.goodsID(t), reservation.OrderLine{BuyerID: fmt.Sprint(id), Quantity: 1})
}

// addBuyer adds a buyer of an order that the fault itself created.
func (r *run) addBuyer(b buyer.Result) {
	r.extraBuyers = append(r.extraBuyers, buyers.Result{Result: b})
}

// publishPoison publishes a message that cannot be decoded and one that cannot be written.
func publishPoison(t *testing.T, r *run) {
	r.publish(t, r.goodsID(t), undecodable(), r.unwritable(t, r.goodsID(t)))
}

// undecodable is a truncated message.
func undecodable() []byte { return []byte(`{"goodsId":`) }

// unwritable is the message of an order whose name is too long for MySQL, which rejects the
// transaction of the whole batch.
func (r *run) unwritable(t *testing.T, goods int64) []byte {
	name := strings.Repeat("x", 4000)
	return r.message(t, goods,
		reservation.OrderLine{BuyerID: fmt.Sprint(poisonBuyer), Quantity: 1, Name: name})
}

// message is the message of one order of epoch 1, whose path has expired.
func (r *run) message(t *testing.T, goods int64, l reservation.OrderLine) []byte {
	keys := must.Get(config.Auth{JWTSecret: installation.Secret}.OrderKeys())(t)
	issued := time.Now().Add(-2 * ordersn.PathTTL)
	l.OrderSn, l.Epoch = ordersn.NewKeys(keys...).Issue(goods, l.BuyerID, issued).String(), 1
	return message.EncodeOrder(goods, l)
}

// awaitLostOrder queries an order of epoch 1 that no server has, until the answer is that it
// failed. It returns the order's message. That answer must stay true when the message arrives.
func (r *run) awaitLostOrder(t *testing.T, id int64) []byte {
	t.Helper()
	asked := time.Now()
	body := r.message(t, r.goodsID(t), reservation.OrderLine{BuyerID: fmt.Sprint(id), Quantity: 1})
	m := must.Get(message.Decode(body))(t)
	sn := m.Orders[0].OrderSn
	c := r.Buyer(t, id)
	defer c.HTTP.CloseIdleConnections()
	var got struct{ Status, FailureReason string }
	for began := time.Now(); got.Status != "failed"; time.Sleep(20 * time.Millisecond) {
		err := c.Do(t.Context(), http.MethodGet, "/orders/"+sn, nil, &got)
		require.Less(t, time.Since(began), patience, "%+v %v", got, err)
	}
	require.Equal(t, "LOST", got.FailureReason)
	promise := buyer.Accepted{Path: "held back", OrderSn: sn, Sent: asked, Received: time.Now()}
	r.addBuyer(buyer.Result{
		BuyerID: id, Paths: 1, Statuses: []string{got.Status}, Accepted: []buyer.Accepted{promise},
	})
	return body
}

func (r *run) goodsID(t *testing.T) int64 {
	return installation.Number(t, r.goods)
}

// publish sends messages to the orders' exchange with the routing key of a goods.
func (r *run) publish(t *testing.T, goods int64, bodies ...[]byte) {
	conn := must.Get(amqp.Dial(r.AMQP))(t)
	defer conn.Close()
	ch := must.Get(conn.Channel())(t)
	require.NoError(t, ch.Confirm(false))
	key := strconv.Itoa(order.Shard(goods, r.shards))
	for _, body := range bodies {
		m := amqp.Publishing{DeliveryMode: amqp.Persistent, Body: body}
		c := must.Get(ch.PublishWithDeferredConfirm("seckill.orders", key, true, false, m))(t)
		ok, err := c.WaitContext(context.WithoutCancel(t.Context()))
		require.True(t, ok && err == nil, "not confirmed: %v", err)
	}
}
