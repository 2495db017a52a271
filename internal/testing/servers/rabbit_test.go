package servers_test

import (
	"context"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testing/must"
	"flashsale.dev/seckill/internal/testing/servers"
)

// TestRabbitMQ_WholeLife checks one broker step by step, because a start takes seconds.
func TestRabbitMQ_WholeLife(t *testing.T) {
	t.Parallel()
	rabbit := servers.RabbitMQ(t)
	url := rabbit.NewVHost(t)
	t.Run("a vhost is a test's own", func(t *testing.T) {
		require.NotEqual(t, url, rabbit.NewVHost(t))
		publish(t, url, "hello")
		requireMessage(t, url)
	})
	t.Run("rabbitmqctl", func(t *testing.T) {
		out := must.Get(rabbit.Ctl(t.Context(), "list_vhosts"))(t)
		require.Contains(t, out, "test-")
		_, err := rabbit.Ctl(t.Context(), "no-such-command")
		require.Error(t, err)
	})
	t.Run("paused it lets nobody in", func(t *testing.T) {
		require.NoError(t, rabbit.Pause())
		_, err := amqp.DialConfig(url, amqp.Config{Dial: amqp.DefaultDial(200 * time.Millisecond)})
		require.Error(t, err)
		require.NoError(t, rabbit.Resume())
	})
	t.Run("keeps confirmed messages through a kill", func(t *testing.T) {
		// RabbitMQ writes the directory of its quorum queues to disk up to a second late. A broker
		// that dies before starts the queue anew, without its confirmed messages.
		must.Get(rabbit.Ctl(t.Context(), "eval", "[dets:sync(T) || T <- dets:all()]."))(t)
		require.NoError(t, rabbit.Kill())
		_, err := amqp.Dial(url)
		require.Error(t, err, "a killed broker must not answer")
		require.NoError(t, rabbit.Restart(t.Context()))
		requireMessage(t, url)
	})
	t.Run("restart empty loses all", func(t *testing.T) {
		require.NoError(t, rabbit.RestartEmpty(t.Context()))
		_, err := amqp.Dial(url)
		require.Error(t, err, "the vhost must be gone")
		publish(t, rabbit.NewVHost(t), "again")
	})
}

func onChannel(t *testing.T, url string, work func(context.Context, *amqp.Channel)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	conn := must.Get(amqp.Dial(url))(t)
	defer func() { require.NoError(t, conn.Close()) }()
	channel := must.Get(conn.Channel())(t)
	work(ctx, channel)
}

// publish sends one persistent message to a quorum queue and waits for the confirm.
func publish(t *testing.T, url, text string) {
	t.Helper()
	onChannel(t, url, func(ctx context.Context, channel *amqp.Channel) {
		require.NoError(t, channel.Confirm(false))
		_, err := channel.QueueDeclare("orders", true, false, false, false,
			amqp.Table{"x-queue-type": "quorum"})
		require.NoError(t, err)
		confirm := must.Get(channel.PublishWithDeferredConfirmWithContext(ctx, "", "orders",
			true, false, amqp.Publishing{DeliveryMode: amqp.Persistent, Body: []byte(text)}))(t)
		acked := must.Get(confirm.WaitContext(ctx))(t)
		require.True(t, acked)
	})
}

// requireMessage requires that the queue holds a message, and leaves it there. The queue's own
// counter may lag. A broker that has just started may let a get time out and close its channel, so
// each attempt has a connection of its own.
func requireMessage(t *testing.T, url string) {
	t.Helper()
	require.Eventually(t, func() bool {
		conn, err := amqp.Dial(url)
		if err != nil {
			return false
		}
		defer conn.Close()
		channel, err := conn.Channel()
		if err != nil {
			return false
		}
		_, found, err := channel.Get("orders", false)
		return err == nil && found
	}, time.Minute, 50*time.Millisecond)
}
