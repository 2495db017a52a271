package redislimit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"flashsale.dev/seckill/internal/workers"
	"flashsale.dev/seckill/scripts/lua"
)

// ScriptKey is the Redis key of the script's SHA-1, in hex. nginx (deploy/nginx) runs the
// script by EVALSHA with it, and needs no copy of the script.
const ScriptKey = "lua:sha1:rate_limiter"

const (
	publishEvery   = time.Second
	publishTimeout = 500 * time.Millisecond
)

// Publisher keeps the script in Redis' script cache and its SHA-1 under ScriptKey. Any
// number of nodes may run one.
type Publisher struct{ client redis.UniversalClient }

// NewPublisher makes a Publisher, which does nothing until Run or Publish.
func NewPublisher(client redis.UniversalClient) *Publisher {
	return &Publisher{client: client}
}

// Run publishes at once. It publishes again within a second after Redis has lost the script or the
// key (SCRIPT FLUSH, a restart, a failover). It passes errors to report and retries a second later.
func (p *Publisher) Run(ctx context.Context, report func(error)) error {
	step := p.Publish
	return workers.Every(ctx, publishEvery, func(ctx context.Context) {
		if err := step(ctx); err == nil {
			step = p.Keep
		} else if ctx.Err() == nil {
			report(err)
		}
	})
}

// Publish loads the script, on every master of a cluster, and stores its SHA-1.
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

// Keep publishes unless a loaded script is published already. It does not replace another release's
// script. Two releases that run side by side would otherwise overwrite each other's SHA-1 every
// second.
func (p *Publisher) Keep(ctx context.Context) error {
	published, err := p.published(ctx)
	if err != nil || published {
		return err
	}
	return p.Publish(ctx)
}

// published reports whether a script is published that Redis has loaded.
func (p *Publisher) published(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	sha, err := p.client.Get(ctx, ScriptKey).Result() // "" if there is none
	if err != nil && !errors.Is(err, redis.Nil) {
		return false, fmt.Errorf("ratelimit: read the published script: %w", err)
	}
	loaded, err := p.client.ScriptExists(ctx, sha).Result()
	if err != nil {
		return false, fmt.Errorf("ratelimit: check the published script: %w", err)
	}
	return len(loaded) == 1 && loaded[0], nil
}
