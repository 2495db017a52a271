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

// Options are what a Publisher and a Source need; zero values take the defaults given here.
type Options struct {
	URLs   []string // AMQP addresses of one cluster's nodes, tried in turn from one by chance on; at least one
	Shards int      // 1; the same in every program
	Name   string   // of the connection, as the broker's management shows it: seckill
	Logger *slog.Logger

	// PublishTimeout bounds a Publish whose context has no deadline: 1 s.
	PublishTimeout time.Duration
	// Channels share the shards; more than one pays only where several shards are busy: 4, at most one per shard.
	Channels int
	// MaxUnconfirmed messages are under way at once; the next waits, until its context ends: 4096.
	MaxUnconfirmed int
	// StallAfter is how long the broker may confirm nothing of a shard while messages wait, before the shard counts as down: 2 s.
	// After twice as long without any confirm the connection is given up for the next address, after five times as long of
	// one shard's silence too.
	StallAfter time.Duration
	// OnFreshTopology is told of a shard whose queue is new: never fed, or declared again after its data was lost. It is
	// called after every connect and declaration until Publisher.MarkFed is, from the publisher's own
	// goroutine: it must not block.
	OnFreshTopology func(shard int)

	// Observer hears of every message sent; nil: nobody.
	Observer Observer
	// TraceParent returns the W3C traceparent that a message carries; nil, or "": none.
	TraceParent func(ctx context.Context) string

	// Prefetch is how many messages a stream has out unacknowledged: 512. A message may hold 256 orders of
	// some 200 bytes, so that is at worst 26 MB.
	Prefetch int
	// DeliveryLimit is how often a message may be handed back before it is a dead letter: 1000. It is an argument of the
	// queue: a queue that exists keeps its own, and another value is an error of the declaration.
	DeliveryLimit int
}

// Limits that nobody needs to set.
const (
	heartbeat    = 5 * time.Second // of AMQP: a silent peer is given up after three
	dialTimeout  = 2 * time.Second // TCP, TLS and AMQP handshake of one address
	setupTimeout = 3 * time.Second // declarations and opening of channels
	closeTimeout = 1 * time.Second // the orderly end of a connection
	retryFirst   = 50 * time.Millisecond
	retryMost    = 1500 * time.Millisecond // before jitter of a quarter
)

// complete checks and fills in.
func (o Options) complete() (Options, error) {
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

func orElse[N int | time.Duration](n, fallback N) N {
	if n > 0 {
		return n
	}
	return fallback
}

// withoutURL keeps an address, which carries a password, out of messages.
func withoutURL(err error) error {
	var bad *url.Error
	if errors.As(err, &bad) {
		return bad.Err
	}
	return err
}
