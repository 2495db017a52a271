package rabbit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// Options configure a Publisher and a Source. Zero values take the defaults that are stated here.
type Options struct {
	// URLs are the AMQP addresses of one cluster's nodes, at least one. The first is chosen at
	// random.
	URLs   []string
	Shards int // 1; must be the same in all programs
	Logger *slog.Logger

	// PublishTimeout bounds a Publish whose context has no deadline: 1 s.
	PublishTimeout time.Duration
	// MaxUnconfirmed bounds the messages in flight; the next one waits until its context ends:
	// 4096.
	MaxUnconfirmed int
	// StallAfter is how long the broker may confirm no message of a shard, while some are in
	// flight, before the shard is down: 2 s. Longer stalls end the connection (see healthCheck).
	StallAfter time.Duration
	// OnNewQueue is called with each shard whose queue may lack pending orders, because it is new
	// or the broker lost its data. The publisher repeats the call after every connect, and the
	// source with every stream, until MarkRepublished. The function must not block. It must not
	// call MarkRepublished, which waits for it.
	OnNewQueue func(shard int)

	// OnOutcome is called with the outcome of each sent message; it may be nil.
	OnOutcome Outcome
	// TraceParent returns the W3C traceparent of a message; nil, or "": none.
	TraceParent func(ctx context.Context) string

	// DeliveryLimit is how often a message may return to its queue before it becomes a dead letter:
	// 1000. It is an argument of the queue: the broker refuses another value for a queue that
	// exists.
	DeliveryLimit int
}

// Outcome counts and times a sent message: until the connection took it, with the wait for room
// among those in flight, and from then until its outcome. The error is nil, ErrReturned, ErrNacked,
// ErrUnconfirmed or that of the caller's context. Many goroutines call it.
type Outcome = func(sending, confirming time.Duration, err error)

// traceParentHeader is the header that W3C's Trace Context for AMQP names.
const traceParentHeader = "traceparent"

// headers returns a message's headers; nil if its purchase is not traced.
func (o Options) headers(ctx context.Context) amqp.Table {
	if o.TraceParent == nil {
		return nil
	}
	if parent := o.TraceParent(ctx); parent != "" {
		return amqp.Table{traceParentHeader: parent}
	}
	return nil
}

// Limits without a setting.
const (
	// connectionName is the connection's name in the broker's management.
	connectionName = "seckill"
	// channels is how many channels a publisher's shards share, at most one per shard.
	channels = 4
	// prefetch bounds a stream's unacknowledged messages. A message holds up to 256 orders of some
	// 200 bytes, so that is at most 26 MB.
	prefetch = 512
	// maxHeld bounds the bytes of a stream's unacknowledged messages. RabbitMQ has no prefetch in
	// bytes, and accepts messages of 16 MiB (before version 4: 128 MiB). A prefetch of such foreign
	// messages would not fit into memory, and the queue would deliver it to the next process again.
	// So the stream ends, and for fewFor the queue's next one has the prefetch fewMessages.
	maxHeld     = 64 << 20
	fewMessages = 4
	fewFor      = 30 * time.Second

	heartbeat    = 5 * time.Second // of AMQP; the library gives up a silent peer after three
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
		if _, err := parseURL(address); err != nil {
			return o, fmt.Errorf("AMQP address %d: %w", i+1, err)
		}
	}
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	o.Shards = cmp.Or(o.Shards, 1)
	o.PublishTimeout = cmp.Or(o.PublishTimeout, time.Second)
	o.MaxUnconfirmed = cmp.Or(o.MaxUnconfirmed, 4096)
	o.StallAfter = cmp.Or(o.StallAfter, 2*time.Second)
	o.DeliveryLimit = cmp.Or(o.DeliveryLimit, 1000)
	if o.OnOutcome == nil {
		o.OnOutcome = func(_, _ time.Duration, _ error) {}
	}
	return o, nil
}

// wrap adds the operation to an error. It returns nil for nil.
func wrap(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf(format+": %w", append(args, err)...)
}

// errBadURL replaces the errors of net/url. They quote what stands where a port belongs: a part of
// the password, if that has one of these characters.
var errBadURL = errors.New("write amqp://user:password@host:5672/, and each of % : / ? # @ and " +
	"comma within user, password and virtual host as % and two hex digits, such as %2F for /")

// parseURL parses an address. Its errors contain nothing of a password.
func parseURL(address string) (amqp.URI, error) {
	u, err := url.Parse(address)
	if err != nil || endsHostInPassword(u) {
		return amqp.URI{}, errBadURL
	}
	return amqp.ParseURI(address)
}

// endsHostInPassword reports whether a slash or a # of the password ended the host too early. The
// real host then follows an @ in the path or the fragment. The parsed host is the user, or what
// follows another @ of the password, which the log would show. A virtual host may have an @, too.
func endsHostInPassword(u *url.URL) bool {
	_, rest, found := strings.Cut(u.EscapedPath(), "@")
	return found && (u.User == nil || strings.ContainsAny(rest, ":/")) ||
		strings.Contains(u.Fragment, "@")
}
