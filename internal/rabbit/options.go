package rabbit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// Options configure a Publisher and a Source. Zero values take the defaults that are stated here.
type Options struct {
	// URLs are the AMQP addresses of one cluster's nodes, at least one. The first is chosen at
	// random.
	URLs   []string
	Shards int    // 1; must be the same in all programs
	Name   string // of the connection in the broker's management: seckill
	Logger *slog.Logger

	// PublishTimeout bounds a Publish whose context has no deadline: 1 s.
	PublishTimeout time.Duration
	// Channels is how many channels the shards share, at most one per shard: 4.
	Channels int
	// MaxUnconfirmed bounds the messages in flight; the next one waits until its context ends:
	// 4096.
	MaxUnconfirmed int
	// StallAfter is how long the broker may confirm no message of a shard, while some are in
	// flight, before the shard counts as down: 2 s. Longer stalls end the connection (see
	// healthCheck).
	StallAfter time.Duration
	// OnNewQueue is called with each shard whose queue may lack pending orders: it is new, or the
	// broker lost its data. The publisher repeats the call after every connect until
	// MarkRepublished. The function must not block.
	OnNewQueue func(shard int)

	// Metrics may be nil.
	Metrics Metrics
	// TraceParent returns the W3C traceparent that a message carries; nil, or "": none.
	TraceParent func(ctx context.Context) string

	// Prefetch bounds a stream's unacknowledged messages: 512. A message holds up to 256 orders of
	// some 200 bytes, so that is at most 26 MB.
	Prefetch int
	// DeliveryLimit is how often a message may return to its queue before it becomes a dead letter:
	// 1000. It is an argument of the queue: the broker refuses another value for a queue that
	// exists.
	DeliveryLimit int
}

// Limits without a setting.
const (
	heartbeat    = 5 * time.Second // of AMQP; the library gives a silent peer up after three
	dialTimeout  = 2 * time.Second // TCP, TLS and AMQP handshake of one address
	setupTimeout = 3 * time.Second // declarations and opening of channels
	closeTimeout = 1 * time.Second // the orderly end of a connection
	retryFirst   = 50 * time.Millisecond
	retryMost    = 1500 * time.Millisecond // before jitter of a quarter
)

// withDefaults validates the options and fills in the defaults.
func (o Options) withDefaults() (Options, error) {
	if len(o.URLs) == 0 {
		return o, errors.New("no AMQP address")
	}
	for i, address := range o.URLs {
		if _, err := amqp.ParseURI(address); err != nil {
			return o, fmt.Errorf("AMQP address %d: %w", i+1, withoutURL(err))
		}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Name == "" {
		o.Name = "seckill"
	}
	o.Shards = orElse(o.Shards, 1)
	o.PublishTimeout = orElse(o.PublishTimeout, time.Second)
	o.Channels = orElse(o.Channels, 4)
	o.MaxUnconfirmed = orElse(o.MaxUnconfirmed, 4096)
	o.StallAfter = orElse(o.StallAfter, 2*time.Second)
	o.Prefetch = orElse(o.Prefetch, 512)
	o.DeliveryLimit = orElse(o.DeliveryLimit, 1000)
	return o, nil
}

// orElse returns n if it is set.
func orElse[N int | time.Duration](n, fallback N) N {
	if n > 0 {
		return n
	}
	return fallback
}

// withoutURL removes the address from an error, because it contains a password.
func withoutURL(err error) error {
	var bad *url.Error
	if errors.As(err, &bad) {
		return bad.Err
	}
	return err
}
