package connect

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"flashsale.dev/seckill/internal/cause"
)

const (
	// slotMapAge bounds the age of a client's map of slots. MOVED and unreachable nodes renew the
	// map earlier.
	slotMapAge = time.Second
	// slotMapTimeout bounds the request for the map to one node. Any other node can answer it too.
	slotMapTimeout = 300 * time.Millisecond
	// openFor is how long the client sends no command to a node that did not reply. Then it sends
	// one at a time.
	openFor = 200 * time.Millisecond
)

// errBreakerOpen reports a command that was not sent, because its node's circuit breaker is open.
var errBreakerOpen = cause.With(
	errors.New("redis: a node of the cluster does not reply; retry later"), cause.Unreachable)

// newCluster makes a cluster's client. It follows MOVED and ASK, and retries three times within
// about 100 ms if a node reports that it executed nothing (TRYAGAIN, CLUSTERDOWN, LOADING). Each
// node has its own connections and a circuit breaker, so that a dead node delays only commands for
// its slots.
func newCluster(opts *redis.UniversalOptions) *redis.ClusterClient {
	clusterOpts := opts.Cluster()
	clusterOpts.ClusterStateReloadInterval = slotMapAge
	c := redis.NewClusterClient(clusterOpts)
	reload := func() { c.ReloadState(context.Background()) } // returns at once
	c.OnNewNode(func(node *redis.Client) {
		node.AddHook(addressHook(node.Options().Addr)) // first: it sees the errors of later hooks
		node.AddHook(&breaker{reload: reload, now: time.Now})
	})
	// A deadline may pass before the client knows the node of a command.
	c.AddHook(addressHook(strings.Join(opts.Addrs, ",")))
	return c
}

// breaker is the circuit breaker of one node of a cluster. If the node does not reply or is
// unreachable, the breaker opens for openFor and the client reloads its map of slots. Then one
// command at a time tests the node, and the others fail at once.
type breaker struct {
	reload func()
	now    func() time.Time

	mu      sync.Mutex
	open    bool
	until   time.Time
	testing bool
}

// allow reports whether a command may be sent.
func (b *breaker) allow() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.open {
		return true
	}
	if b.testing || b.now().Before(b.until) {
		return false
	}
	b.testing = true
	return true
}

// record updates the breaker with the outcome of a command.
func (b *breaker) record(ctx context.Context, err error) {
	failed := unreachable(ctx, err)
	if failed || redis.HasErrorPrefix(err, "CLUSTERDOWN") {
		b.reload()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.testing = false
	switch {
	case failed:
		b.open, b.until = true, b.now().Add(openFor)
	case replied(err):
		b.open = false
	}
}

// unreachable reports whether the node failed to reply. An error within a short deadline of the
// caller is no evidence against the node.
func unreachable(ctx context.Context, err error) bool {
	if at, ok := ctx.Deadline(); ctx.Err() != nil || ok && time.Until(at) < time.Millisecond {
		return false
	}
	var dial *net.OpError
	var timeout net.Error
	return errors.As(err, &dial) && dial.Op == "dial" ||
		errors.As(err, &timeout) && timeout.Timeout() ||
		errors.Is(err, redis.ErrPoolTimeout)
}

// replied reports whether the node replied, even with an error.
func replied(err error) bool {
	var reply redis.Error
	return err == nil || errors.As(err, &reply)
}

// allowed is the key of a context that marks a command which the breaker has allowed. For a new
// connection the client sends further commands in that context, which pass the same hooks.
type allowed struct{}

// do runs a call unless the breaker is open, and records its outcome.
func (b *breaker) do(ctx context.Context, call func(context.Context) error) error {
	if ctx.Value(allowed{}) != nil {
		return call(ctx)
	}
	ctx = context.WithValue(ctx, allowed{}, true)
	if !b.allow() {
		return errBreakerOpen
	}
	err := call(ctx)
	b.record(ctx, err)
	return err
}

// ProcessHook wraps commands. Requests for the map of slots have a shorter timeout that does not
// open the breaker. Otherwise a busy machine would open the breakers of all nodes in turn.
func (b *breaker) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if strings.HasPrefix(cmd.FullName(), "cluster") {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, slotMapTimeout)
			defer cancel()
		}
		err := b.do(ctx, func(ctx context.Context) error { return next(ctx, cmd) })
		if errors.Is(err, errBreakerOpen) {
			cmd.SetErr(err)
		}
		return err
	}
}

// ProcessPipelineHook wraps pipelines.
func (b *breaker) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		return b.do(ctx, func(ctx context.Context) error { return next(ctx, cmds) })
	}
}

// DialHook implements redis.Hook; it changes nothing.
func (b *breaker) DialHook(next redis.DialHook) redis.DialHook { return next }
