package rabbit

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// link is one AMQP connection together with its socket. amqp091-go's calls wait for their answers without a limit, so each
// is made under within, which cuts the socket when its time is up.
type link struct {
	*amqp.Connection
	socket *socket
	host   string
	ended  chan *amqp.Error
	later  *amqp.Channel // for what nobody waits for; nil until needed
}

// dial connects to one address, within dialTimeout.
func dial(ctx context.Context, address, name string) (*link, error) {
	uri, err := amqp.ParseURI(address)
	if err != nil {
		return nil, withoutURL(err)
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	l := &link{host: net.JoinHostPort(uri.Host, fmt.Sprint(uri.Port)), ended: make(chan *amqp.Error, 1)}
	properties := amqp.NewConnectionProperties()
	properties.SetClientConnectionName(name)
	var stop func() bool
	l.Connection, err = amqp.DialConfig(address, amqp.Config{
		Locale: "en_US", Heartbeat: heartbeat, Properties: properties,
		Dial: func(network, addr string) (net.Conn, error) {
			conn, err := dialTCP(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			l.socket = newSocket(conn)
			stop = context.AfterFunc(ctx, l.socket.cut)
			return l.socket, nil
		},
	})
	if stop != nil && !stop() {
		err = errors.Join(ctx.Err(), err)
	}
	if err != nil {
		l.drop()
		return nil, fmt.Errorf("connect to %s: %w", l.host, err)
	}
	l.NotifyClose(l.ended)
	return l, nil
}

func dialTCP(ctx context.Context, network, addr string) (net.Conn, error) {
	dialer := net.Dialer{KeepAliveConfig: net.KeepAliveConfig{
		Enable: true, Idle: heartbeat, Interval: heartbeat / 5, Count: 5,
	}}
	return dialer.DialContext(ctx, network, addr)
}

// within runs calls to the broker and cuts the connection if they take longer than d or ctx ends.
func (l *link) within(ctx context.Context, d time.Duration, calls func() error) error {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	stop := context.AfterFunc(ctx, l.socket.cut)
	err := calls()
	if !stop() {
		return errors.Join(ctx.Err(), err)
	}
	return err
}

// close ends the connection in an orderly way if the broker answers in closeTimeout, and in any case.
func (l *link) close() error {
	err := l.CloseDeadline(time.Now().Add(closeTimeout))
	l.drop()
	if errors.Is(err, amqp.ErrClosed) {
		return nil
	}
	return err
}

// drop closes the socket; a second time does nothing.
func (l *link) drop() {
	if l.socket != nil {
		_ = l.socket.Close()
	}
}
