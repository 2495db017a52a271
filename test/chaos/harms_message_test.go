package chaos

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
	"flashsale.dev/seckill/test/chaos/check"
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
		{name: "poison", expect: check.Expect{DeadLetters: 2}, do: poison},
	}
}

// shards is the default of SECKILL_ORDER_SHARDS.
const shards = 4

// poison publishes, beside good orders, what can't be decoded and what can't be written.
func poison(t *testing.T, s *scene) {
	t.Helper()
	s.until(s.between(0.1, 0.7))
	key, err := config.Auth{JWTSecret: rig.Secret}.OrderKey()
	require.NoError(t, err)
	goods, err := strconv.ParseInt(s.goods, 10, 64)
	require.NoError(t, err)
	sn, err := ordersn.NewMinter(key).Mint(goods, 1)
	require.NoError(t, err)
	tooLong, err := order.EncodeLine(seckill.Line{OrderSn: sn, BuyerID: 1 << 40, Quantity: 1, Name: strings.Repeat("x", 4000)})
	require.NoError(t, err)
	s.publish(t, goods, []byte(`{"goodsId":`), order.EncodeOrders(goods, order.JoinEntries([][]byte{tooLong})))
}

// publish sends messages straight to the orders' exchange.
func (s *scene) publish(t *testing.T, goods int64, bodies ...[]byte) {
	t.Helper()
	conn, err := amqp.Dial(s.AMQP)
	require.NoError(t, err)
	defer conn.Close() //nolint:errcheck // what it sent was confirmed
	ch, err := conn.Channel()
	require.NoError(t, err)
	require.NoError(t, ch.Confirm(false))
	for _, body := range bodies {
		m := amqp.Publishing{DeliveryMode: amqp.Persistent, Body: body}
		c, err := ch.PublishWithDeferredConfirm("seckill.orders", strconv.Itoa(order.Shard(goods, shards)), true, false, m)
		require.NoError(t, err)
		ok, err := c.WaitContext(context.WithoutCancel(t.Context()))
		require.True(t, ok && err == nil, "not confirmed: %v", err)
	}
}
