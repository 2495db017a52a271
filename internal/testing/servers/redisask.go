package servers

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// redisPatience bounds one command whose caller has set no closer deadline: a paused server never answers.
const redisPatience = 5 * time.Second

// ask sends one command over a connection of its own, without retries. Answers are string, int64, nil
// or []any of them, as RESP2 has them.
func ask(ctx context.Context, addr string, command ...any) (any, error) {
	ctx, cancel := context.WithTimeout(ctx, redisPatience)
	defer cancel()
	client := redis.NewClient(&redis.Options{
		Addr: addr, Protocol: 2, MaxRetries: -1, PoolSize: 1, DisableIdentity: true, ContextTimeoutEnabled: true,
	})
	defer client.Close() // nothing is lost with it
	answer, err := client.Do(ctx, command...).Result()
	if err != nil {
		return nil, fmt.Errorf("%v to %s: %w", command, addr, err)
	}
	return answer, nil
}

// askText is ask for an answer that is text.
func askText(ctx context.Context, addr string, command ...any) (string, error) {
	answer, err := ask(ctx, addr, command...)
	text, _ := answer.(string)
	return text, err
}
