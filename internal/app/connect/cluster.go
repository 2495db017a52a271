package connect

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// redisMapLife is how old a client's map of a cluster (who is master of which slots) may get where nothing tells that it is
	// wrong: MOVED does, and so does a node that is gone.
	redisMapLife = time.Second
	// redisMapTalk bounds asking one node for the map: the next one knows it as well.
	redisMapTalk = 300 * time.Millisecond
	// silentFor is how long a node that did not answer is asked nothing, and then one thing at a time.
	silentFor = 200 * time.Millisecond
)

// errSilent says that a command was not sent, as its node did not answer a moment ago.
var errSilent = errors.New("redis: this node of the cluster did not answer a moment ago")

// ofCluster makes a cluster's client. It follows MOVED and ASK, and asks again, three times within some 100 ms, where a node says
// that nothing happened (TRYAGAIN, CLUSTERDOWN, LOADING). Each node has connections of its own and a guard: what hangs
// or is dead holds up only those who want something from it, and of the background's rounds over all sales one step.
func ofCluster(opts *redis.UniversalOptions) *redis.ClusterClient {
	clusterOpts := opts.Cluster()
	clusterOpts.ClusterStateReloadInterval = redisMapLife
	c := redis.NewClusterClient(clusterOpts)
	lookAgain := func() { c.ReloadState(context.Background()) } // returns at once
	c.OnNewNode(func(node *redis.Client) { node.AddHook(&guard{lookAgain: lookAgain, now: time.Now}) })
	return c
}

// guard stands before one node of a cluster. Where the node takes a call and does not answer, or can't be reached, the client is
// told to look who is master now, and the node is left alone for a moment; then one call at a time finds out
// whether it is back, while others are refused at once.
type guard struct {
	lookAgain func()
	now       func() time.Time

	mu     sync.Mutex
	silent bool
	until  time.Time
	trying bool
}

// enter tells whether a call may go on.
func (g *guard) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.silent {
		return true
	}
	if g.trying || g.now().Before(g.until) {
		return false
	}
	g.trying = true
	return true
}

// leave hears what came of a call.
func (g *guard) leave(ctx context.Context, err error) {
	gone := unreached(ctx, err)
	if gone || redis.HasErrorPrefix(err, "CLUSTERDOWN") {
		g.lookAgain()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.trying = false
	switch {
	case gone:
		g.silent, g.until = true, g.now().Add(silentFor)
	case answered(err):
		g.silent = false
	}
}

// unreached tells whether an error is the node's silence, and not the caller's impatience.
func unreached(ctx context.Context, err error) bool {
	if at, ok := ctx.Deadline(); ctx.Err() != nil || ok && time.Until(at) < time.Millisecond {
		return false
	}
	var calling *net.OpError
	var waiting net.Error
	return errors.As(err, &calling) && calling.Op == "dial" || errors.As(err, &waiting) && waiting.Timeout() ||
		errors.Is(err, redis.ErrPoolTimeout)
}

// answered tells whether the node said something, be it an error.
func answered(err error) bool {
	var said redis.Error
	return err == nil || errors.As(err, &said)
}

// inside marks the context of a call that the guard has let through: what a new connection says first belongs to it, and comes by
// here as well.
type inside struct{}

func (g *guard) through(ctx context.Context, call func(context.Context) error) error {
	if ctx.Value(inside{}) != nil {
		return call(ctx)
	}
	ctx = context.WithValue(ctx, inside{}, true)
	if !g.enter() {
		return errSilent
	}
	err := call(ctx)
	g.leave(ctx, err)
	return err
}

// ProcessHook guards commands. The question for the map has a shorter patience, and who is slow to answer it is not called silent: a busy
// machine must not have its nodes left alone one after another.
func (g *guard) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if strings.HasPrefix(cmd.FullName(), "cluster") {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, redisMapTalk)
			defer cancel()
		}
		err := g.through(ctx, func(ctx context.Context) error { return next(ctx, cmd) })
		if errors.Is(err, errSilent) {
			cmd.SetErr(err)
		}
		return err
	}
}

// ProcessPipelineHook guards pipelines.
func (g *guard) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		return g.through(ctx, func(ctx context.Context) error { return next(ctx, cmds) })
	}
}

// DialHook is part of the interface.
func (g *guard) DialHook(next redis.DialHook) redis.DialHook { return next }
