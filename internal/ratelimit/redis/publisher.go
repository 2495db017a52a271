package redislimit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"flashsale.dev/seckill/scripts/lua"
)

// ScriptKey is the Redis key that holds the SHA-1, in hex, of the script which decides, so that an edge (deploy/nginx)
// can run the very same by EVALSHA and needs no copy of it.
const ScriptKey = "lua:sha1:rate_limiter"

const (
	publishEvery   = time.Second
	publishTimeout = 500 * time.Millisecond
)

// Publisher keeps the script in Redis' cache and its SHA under ScriptKey. Any number of nodes may have one.
type Publisher struct{ client redis.UniversalClient }

// NewPublisher makes one; nothing happens until Run or Publish.
func NewPublisher(client redis.UniversalClient) *Publisher {
	return &Publisher{client: client}
}

// Run publishes at once, and again whenever Redis has lost the script or its name (SCRIPT FLUSH, a restart, a failover),
// within a second. Errors are told by report, which may be nil, and mended by the next round.
func (p *Publisher) Run(ctx context.Context, report func(error)) error {
	tick := time.NewTicker(publishEvery)
	defer tick.Stop()
	step := p.Publish
	for {
		err := step(ctx)
		switch {
		case err == nil:
			step = p.Keep
		case ctx.Err() == nil && report != nil:
			report(err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// Publish loads the script, everywhere in a cluster, and then says which it is.
func (p *Publisher) Publish(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	sha, err := p.client.ScriptLoad(ctx, lua.Source("ratelimit_decide")).Result()
	if err != nil {
		return fmt.Errorf("ratelimit: load the script: %w", err)
	}
	if err := p.client.Set(ctx, ScriptKey, sha, 0).Err(); err != nil {
		return fmt.Errorf("ratelimit: publish the script: %w", err)
	}
	return nil
}

// Keep publishes where nothing usable is published. What another node has published is left: while two releases run side
// by side each has its script in the cache, and they would only take the name from one another.
func (p *Publisher) Keep(ctx context.Context) error {
	usable, err := p.usable(ctx)
	if err != nil || usable {
		return err
	}
	return p.Publish(ctx)
}

func (p *Publisher) usable(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	sha, err := p.client.Get(ctx, ScriptKey).Result()
	if errors.Is(err, redis.Nil) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("ratelimit: look for the published script: %w", err)
	}
	loaded, err := p.client.ScriptExists(ctx, sha).Result()
	if err != nil {
		return false, fmt.Errorf("ratelimit: look for the script: %w", err)
	}
	return len(loaded) == 1 && loaded[0], nil
}
