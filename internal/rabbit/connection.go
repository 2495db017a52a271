package rabbit

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"flashsale.dev/seckill/internal/cause"
	"flashsale.dev/seckill/internal/rawconn"
)

// connection is an AMQP connection with its socket. amqp091-go waits for the broker's answers
// without a limit. Each of its calls therefore runs within withTimeout, which closes the socket
// when the time is up.
type connection struct {
	*amqp.Connection
	socket *socket
	host   string
	ended  chan *amqp.Error
	noWait *amqp.Channel // for declarations without an answer; nil until needed
	asks   *amqp.Channel // for passive declarations; nil until needed
}

// dial connects to one address within dialTimeout.
func dial(ctx context.Context, address string) (*connection, error) {
	uri, err := parseURL(address)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	c := &connection{
		host: hostOf(uri), ended: make(chan *amqp.Error, 1),
	}
	properties := amqp.NewConnectionProperties()
	properties.SetClientConnectionName(connectionName)
	var stop func() bool
	c.Connection, err = amqp.DialConfig(address, amqp.Config{
		Locale: "en_US", Heartbeat: heartbeat, Properties: properties,
		Dial: func(network, addr string) (net.Conn, error) {
			conn, err := dialTCP(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			c.socket = newSocket(conn)
			stop = context.AfterFunc(ctx, c.socket.abort)
			return c.socket, nil
		},
	})
	if stop != nil && !stop() {
		err = errors.Join(ctx.Err(), err)
	}
	if err != nil {
		c.disconnect()
		return nil, fmt.Errorf("connect to %s: %w", c.host, withCause(err))
	}
	c.NotifyClose(c.ended)
	return c, nil
}

// hostOf returns host:port of an address.
func hostOf(uri amqp.URI) string { return net.JoinHostPort(uri.Host, fmt.Sprint(uri.Port)) }

// withCause adds the cause to an error of a refused connection. RabbitMQ delays its refusal of a
// password for longer than dialTimeout; the library then reports it, because nothing else can fail
// at that step.
func withCause(err error) error {
	closed, ok := errors.AsType[*amqp.Error](err)
	switch {
	case ok && limitReached(closed):
		return cause.With(err, atLimit)
	case ok && closed.Code == amqp.AccessRefused:
		return cause.With(err, cause.Refused)
	case ok && closed.Code == amqp.NotAllowed:
		return cause.With(err, cause.NoVHost)
	}
	// The reader got bytes that are no frame, such as an alert of TLS.
	if ok && closed.Code == amqp.FrameError && strings.HasPrefix(closed.Reason, "Exception (501)") {
		return cause.With(err, "speaks no AMQP; if it requires TLS, write amqps://")
	}
	return err
}

// dialTCP enables keep-alives, which end an idle connection to a vanished host after two
// heartbeats. The library alone would need three.
func dialTCP(ctx context.Context, network, addr string) (net.Conn, error) {
	dialer := net.Dialer{KeepAliveConfig: net.KeepAliveConfig{
		Enable: true, Idle: heartbeat, Interval: heartbeat / 5, Count: 5,
	}}
	return rawconn.With(dialer.DialContext)(ctx, network, addr)
}

// withTimeout runs calls to the broker. It aborts the connection if they take longer than d or ctx
// ends.
func (c *connection) withTimeout(ctx context.Context, d time.Duration, calls func() error) error {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	stop := context.AfterFunc(ctx, c.socket.abort)
	err := calls()
	if !stop() {
		return errors.Join(ctx.Err(), err)
	}
	return err
}

// close ends the connection by AMQP's handshake if the broker answers within closeTimeout, else
// without.
func (c *connection) close() error {
	err := c.CloseDeadline(time.Now().Add(closeTimeout))
	c.disconnect()
	if errors.Is(err, amqp.ErrClosed) {
		return nil
	}
	return err
}

// disconnect closes the socket. A second call does nothing.
func (c *connection) disconnect() {
	if c.socket != nil {
		_ = c.socket.Close()
	}
}

// channel opens a channel.
func (c *connection) channel() (*amqp.Channel, error) {
	ch, err := c.Channel()
	return ch, wrap(withChannelCause(err), "open channel")
}

// keep opens a channel that stays, unless it is open.
func (c *connection) keep(ch **amqp.Channel) (err error) {
	if *ch == nil || (*ch).IsClosed() {
		*ch, err = c.channel()
	}
	return err
}

// onChannel runs calls on a new channel and closes it. The caller bounds the time: see withTimeout.
func (c *connection) onChannel(calls func(*amqp.Channel) error) error {
	ch, err := c.channel()
	if err != nil {
		return err
	}
	return errors.Join(withChannelCause(calls(ch)), ch.Close())
}

// withChannelCause adds the cause to an error with which the broker closed a channel.
func withChannelCause(err error) error {
	closed, ok := errors.AsType[*amqp.Error](err)
	switch {
	case ok && limitReached(closed):
		return cause.With(err, atLimit)
	case ok && closed.Code == amqp.AccessRefused:
		return cause.With(err, cause.Denied)
	case ok && closed.Code == amqp.PreconditionFailed:
		return cause.With(err, "has a queue or exchange with other properties")
	}
	return err
}

// atLimit is the cause of a refusal that ends when an operator raises a limit.
const atLimit = "has reached a limit: see the log"

// limitReached reports whether the broker has as many connections, channels or queues as it
// permits. Its code is that of an unknown virtual host or of a queue with other properties.
func limitReached(e *amqp.Error) bool {
	return strings.Contains(e.Reason, "limit") && strings.Contains(e.Reason, "reached")
}

// exists runs a passive declaration. The broker answers NOT_FOUND by closing the channel. Otherwise
// the channel stays: a stream asks each second, and a new channel costs the broker more than the
// answer.
func (c *connection) exists(declarePassive func(*amqp.Channel) error) (bool, error) {
	if err := c.keep(&c.asks); err != nil {
		return false, err
	}
	err := withChannelCause(declarePassive(c.asks))
	if closed, ok := errors.AsType[*amqp.Error](err); ok && closed.Code == amqp.NotFound {
		return false, nil
	}
	return err == nil, err
}
