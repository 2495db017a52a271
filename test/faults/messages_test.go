package faults

import (
	"context"
	"strconv"
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/config"
	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/ordersn"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/test/faults/check"
	"flashsale.dev/seckill/test/rig"
)

func messageHarms() []harm {
	return []harm{
		{name: "doubled-messages", do: func(t *testing.T, s *scene) {
			doubled := s.DoubleMessages(t)
			s.until(1)
			require.Positive(t, doubled.Load(), "no message was doubled")
		}},
		{name: "doubled-and-consumer-killed", do: func(t *testing.T, s *scene) {
			s.DoubleMessages(t)
			killTenTimes(t, s, s.Consumers)
		}},
		{name: "late-orders", do: lateOrders},
		{name: "poison", expect: check.Expect{DeadLetters: 2}, do: poison},
		poisonInABatch(),
	}
}

// shards is the default of SECKILL_ORDER_SHARDS.
const shards = 4

// lateOrders has orders of the first epoch come after the second has begun, once with its gate open, and once when Redis
// has died again: the rebuild that opens the gate waits for the queue, which these orders must not hold up.
func lateOrders(t *testing.T, s *scene) {
	t.Helper()
	s.until(s.between(0.1, 0.3))
	killRedis(t, s)
	s.recovers(t)
	s.publish(t, s.goodsID(t), s.late(t, 1<<40))
	s.until(s.between(0.4, 0.6))
	keeper := s.keeper(t)
	require.NoError(t, keeper.Kill())
	s.publish(t, s.goodsID(t), s.late(t, 1<<40+1))
	require.NoError(t, keeper.Restart(t.Context()))
}

// late is the message of an order of epoch 1, for a buyer who is no other's.
func (s *scene) late(t *testing.T, buyer int64) []byte {
	t.Helper()
	s.planted = append(s.planted, check.Buyer{ID: buyer, Paths: 1})
	return s.message(t, s.goodsID(t), seckill.OrderLine{BuyerID: buyer, Quantity: 1})
}

// poison publishes, beside good orders, what can't be decoded and what can't be written.
func poison(t *testing.T, s *scene) {
	t.Helper()
	s.until(s.between(0.1, 0.7))
	s.publish(t, s.goodsID(t), undecodable(), s.unwritable(t, s.goodsID(t)))
}

// undecodable is a message that breaks off.
func undecodable() []byte { return []byte(`{"goodsId":`) }

// unwritable is the message of an order that MySQL has no room for: it costs a whole batch its transaction.
func (s *scene) unwritable(t *testing.T, goods int64) []byte {
	t.Helper()
	return s.message(t, goods, seckill.OrderLine{BuyerID: 1 << 40, Quantity: 1, Name: strings.Repeat("x", 4000)})
}

// message makes the message of one order of a goods under a number of ours, of epoch 1.
func (s *scene) message(t *testing.T, goods int64, l seckill.OrderLine) []byte {
	t.Helper()
	key, err := config.Auth{JWTSecret: rig.Secret}.OrderKey()
	require.NoError(t, err)
	l.OrderSn, err = ordersn.NewMinter(key).Mint(goods, 1)
	require.NoError(t, err)
	entry, err := order.EncodeLine(l)
	require.NoError(t, err)
	return order.EncodeOrders(goods, order.JoinEntries([][]byte{entry}))
}

func (s *scene) goodsID(t *testing.T) int64 {
	t.Helper()
	return number(t, s.goods)
}

func number(t *testing.T, goodsID string) int64 {
	t.Helper()
	goods, err := strconv.ParseInt(goodsID, 10, 64)
	require.NoError(t, err)
	return goods
}

// publish sends messages straight to the orders' exchange, the way that a goods' own go.
func (s *scene) publish(t *testing.T, goods int64, bodies ...[]byte) {
	t.Helper()
	conn, err := amqp.Dial(s.AMQP)
	require.NoError(t, err)
	defer conn.Close()
	ch, err := conn.Channel()
	require.NoError(t, err)
	require.NoError(t, ch.Confirm(false))
	for _, body := range bodies {
		m := amqp.Publishing{DeliveryMode: amqp.Persistent, Body: body}
		c, err := ch.PublishWithDeferredConfirm("seckill.orders", strconv.Itoa(order.Shard(goods, s.queue)), true, false, m)
		require.NoError(t, err)
		ok, err := c.WaitContext(context.WithoutCancel(t.Context()))
		require.True(t, ok && err == nil, "not confirmed: %v", err)
	}
}
