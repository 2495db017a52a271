package rabbit_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/cause"
	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/rabbit"
	"flashsale.dev/seckill/internal/testing/must"
	"flashsale.dev/seckill/internal/testing/testlog"
)

// TestOptions_AreValidated checks that the constructors reject invalid options, and that their
// errors do not contain the password.
func TestOptions_AreValidated(t *testing.T) {
	_, err := rabbit.NewPublisher(rabbit.Options{})
	require.Error(t, err)
	_, err = rabbit.NewSource(rabbit.Options{URLs: []string{"amqp://guest:secret@host:notaport/"}})
	require.Error(t, err)
	require.NotContains(t, err.Error(), "secret")
}

// TestPublisher_DeclaresADeletedQueueAgain checks that a publisher declares a deleted queue again
// and reports its shard as new.
func TestPublisher_DeclaresADeletedQueueAgain(t *testing.T) {
	address := env.RabbitMQ(t).NewVHost(t)
	reported := make(queueReports, 64)
	p := runPublisher(t, rabbit.Options{URLs: []string{address}, OnNewQueue: reported.add})
	reported.await(t, 0)
	require.NoError(t, p.MarkRepublished(t.Context(), 0))
	deleteQueue(t, address, "seckill.orders.0")
	require.ErrorIs(t, publish(t, p), rabbit.ErrReturned)
	reported.await(t, 0)
	require.NoError(t, publish(t, p))
}

// TestPublisher_ReportsAMarkedShardNoMore checks that a reconnected publisher reports only the
// shards without a mark.
func TestPublisher_ReportsAMarkedShardNoMore(t *testing.T) {
	address := env.RabbitMQ(t).NewVHost(t)
	cutter, proxied := through(t, address)
	reported := make(queueReports, 64)
	p := runPublisher(t,
		rabbit.Options{URLs: []string{proxied}, Shards: 2, OnNewQueue: reported.add})
	reported.await(t, 0, 1)
	require.NoError(t, p.MarkRepublished(t.Context(), 0))
	cutter.Drop()
	reported.await(t, 1)
	require.NoError(t, p.MarkRepublished(t.Context(), 1))
	require.Empty(t, reported)
}

// TestPublisher_WarnsOfAnotherNumberOfShards checks that a program names its setting if another one
// has more shards.
func TestPublisher_WarnsOfAnotherNumberOfShards(t *testing.T) {
	address := env.RabbitMQ(t).NewVHost(t)
	runPublisher(t, rabbit.Options{URLs: []string{address}, Shards: 3})
	log := testlog.New()
	runPublisher(t, rabbit.Options{
		URLs: []string{address}, Shards: 2, Logger: slog.New(slog.NewJSONHandler(log, nil)),
	})
	require.Contains(t, log.Next(t), `"queue":"seckill.orders.2"`)
}

// TestSilentBroker_BlocksNothing checks that publishers and sources do not hang on a server that
// never answers.
func TestSilentBroker_BlocksNothing(t *testing.T) {
	t.Parallel() // the test mostly waits for timeouts
	t.Run("it is passed over for the next address", func(t *testing.T) {
		opt := rabbit.Options{URLs: []string{silentBroker(t), env.RabbitMQ(t).NewVHost(t)}}
		p := runPublisher(t, opt)
		require.NoError(t, publish(t, p))
		require.NoError(t, must.Get(openSource(t, opt).Open(t.Context(), 0))(t).Close())
	})
	t.Run("alone, it is down and everything returns", func(t *testing.T) {
		opt := rabbit.Options{URLs: []string{silentBroker(t)}}
		p := must.Get(rabbit.NewPublisher(opt))(t)
		run(t, p)
		require.ErrorIs(t, publish(t, p), order.ErrQueueDown)
		require.ErrorIs(t, p.MarkRepublished(t.Context(), 0), order.ErrQueueDown)
		_, err := openSource(t, opt).Open(t.Context(), 0)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		eventually(t, func() bool { return p.DownReason().Error() != "not connected yet" })
		require.NotContains(t, p.DownReason().Error(), "secret")
	})
	t.Run("an opening that is no longer wanted ends", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		opened := make(chan error, 1)
		source := openSource(t, rabbit.Options{URLs: []string{silentBroker(t)}})
		go func() {
			_, err := source.Open(ctx, 0)
			opened <- err
		}()
		cancel()
		require.ErrorIs(t, <-opened, context.Canceled)
	})
}

// TestPublisher_WrongPasswordIsTheCause checks the refusal of a real broker.
func TestPublisher_WrongPasswordIsTheCause(t *testing.T) {
	t.Parallel() // the test mostly waits for the broker's delay
	address := strings.Replace(env.RabbitMQ(t).URL(), "guest:guest@", "guest:wrong@", 1)
	p := must.Get(rabbit.NewPublisher(rabbit.Options{URLs: []string{address}}))(t)
	run(t, p)
	eventually(t, func() bool { return cause.Of(p.DownReason()) == cause.Refused })
	require.ErrorContains(t, p.DownReason(), "connect to "+p.Hosts())
	require.NotContains(t, p.Hosts(), "wrong")
}

// TestPublisher_NamesWhatTheBrokerDenies checks the causes of refusals of a real broker: to
// connect, to declare a queue, to declare one that exists with other properties, and to publish.
func TestPublisher_NamesWhatTheBrokerDenies(t *testing.T) {
	const (
		denied    = "denies the user a permission"
		different = "has a queue or exchange with other properties"
		limited   = "has reached a limit: see the log"
	)
	ctl := func(t *testing.T, command, address string, args ...string) {
		t.Helper()
		vhost := address[strings.LastIndexByte(address, '/')+1:]
		must.Get(env.RabbitMQ(t).Ctl(t.Context(),
			append([]string{command, "-p", vhost}, args...)...))(t)
	}
	permit := func(t *testing.T, address, configure, write string) {
		t.Helper()
		ctl(t, "set_permissions", address, "guest", configure, write, ".*")
	}
	for name, c := range map[string]struct {
		cause   string
		prepare func(t *testing.T, address string)
	}{
		"no declaration": {denied, func(t *testing.T, address string) {
			t.Helper()
			permit(t, address, "", ".*")
		}},
		"no publishing": {denied, func(t *testing.T, address string) {
			t.Helper()
			permit(t, address, ".*", `^seckill\.(orders\..*|dead.*)$`)
		}},
		"no connection": {limited, func(t *testing.T, address string) {
			t.Helper()
			ctl(t, "set_vhost_limits", address, `{"max-connections": 0}`)
		}},
		"no queue": {limited, func(t *testing.T, address string) {
			t.Helper()
			ctl(t, "set_vhost_limits", address, `{"max-queues": 0}`)
		}},
		"another queue": {different, func(t *testing.T, address string) {
			t.Helper()
			conn := must.Get(amqp.Dial(address))(t)
			defer conn.Close()
			ch := must.Get(conn.Channel())(t)
			must.Get(ch.QueueDeclare("seckill.orders.0", true, false, false, false, nil))(t)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address := env.RabbitMQ(t).NewVHost(t)
			c.prepare(t, address)
			p := must.Get(rabbit.NewPublisher(rabbit.Options{URLs: []string{address}}))(t)
			run(t, p)
			eventually(t, func() bool {
				_ = publish(t, p)
				return cause.Of(p.DownReason()) == c.cause
			})
			if name != "no publishing" {
				source := openSource(t, rabbit.Options{URLs: []string{address}})
				_, err := source.Open(t.Context(), 0)
				require.Equal(t, c.cause, cause.Of(err))
			}
		})
	}
}

// TestPublisher_NodeThatIsAwayHidesNoRefusal lists a broker that refuses the virtual host and a
// node that is away. Whichever of them was tried last, the refusal is the cause.
func TestPublisher_NodeThatIsAwayHidesNoRefusal(t *testing.T) {
	address := env.RabbitMQ(t).URL() + "no-such-host"
	p := must.Get(rabbit.NewPublisher(rabbit.Options{
		URLs: []string{address, "amqp://guest:guest@127.0.0.1:1/"},
	}))(t)
	run(t, p)
	refused := func() bool { return cause.Of(p.DownReason()) == cause.NoVHost }
	eventually(t, refused)
	require.Never(t, func() bool { return !refused() }, 2*time.Second, time.Millisecond)
	require.ErrorContains(t, p.DownReason(), "connect to 127.0.0.1:1")
}

// TestPublisher_StopWaitsForConfirms checks that a stopping publisher waits for the confirms of the
// messages that it has sent.
func TestPublisher_StopWaitsForConfirms(t *testing.T) {
	address := env.RabbitMQ(t).NewVHost(t)
	p := must.Get(rabbit.NewPublisher(rabbit.Options{URLs: []string{address}}))(t)
	stop := run(t, p)
	awaitUp(t, p)
	const n = 500
	published := make(chan error, n)
	for range n {
		go func() { published <- publish(t, p) }()
	}
	require.NoError(t, <-published)
	stop()
	for range n - 1 {
		if err := <-published; err != nil {
			require.ErrorIs(t, err, order.ErrQueueDown, "only a message that was not sent may fail")
		}
	}
}

// TestPublish_AbandonedMessagesReleaseTheirRoom checks that a publish with an ended context
// releases its room. Such publishes must not make an answering broker appear stalled.
func TestPublish_AbandonedMessagesReleaseTheirRoom(t *testing.T) {
	address := env.RabbitMQ(t).NewVHost(t)
	opt := rabbit.Options{
		URLs: []string{address}, MaxUnconfirmed: 4, StallAfter: 200 * time.Millisecond,
	}
	p := runPublisher(t, opt)
	for range 40 {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Microsecond)
		_ = p.Publish(ctx, goods, []byte("x"))
		cancel()
	}
	awaitPublish(t, p)
}
