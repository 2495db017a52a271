package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"flashsale.dev/seckill/internal/order/reconcile"
)

// Readiness is how much of Redis there is.
type Readiness struct {
	Masters     int // of a cluster; 1 where Redis is one server
	Unavailable int // masters that do not answer or have no cluster around them: their sales wait
}

// errUnsafe says that Redis answers and must not be trusted with a sale.
var errUnsafe = errors.New("redis is not fit")

// masterTimeout bounds asking one master: the others are asked at the same time.
const masterTimeout = 400 * time.Millisecond

// Fit asks whether Redis answers, and whether it may be trusted with a sale: a server that evicts keys to make room
// would sell what it has forgotten. A server that does not tell its policy (an embedded or a managed one) is believed. Of a
// cluster one master that answers is enough, and none may be unfit.
func (s *Store) CheckReadiness(ctx context.Context) (Readiness, error) {
	asked, failed, err := s.eachMaster(ctx, s.checkMaster)
	f := Readiness{Masters: asked, Unavailable: len(failed)}
	for _, why := range failed {
		if errors.Is(why, errUnsafe) || f.Unavailable == f.Masters {
			err = errors.Join(err, why)
		}
	}
	return f, err
}

func (s *Store) checkMaster(ctx context.Context, node redis.UniversalClient) error {
	ctx, cancel := context.WithTimeout(ctx, masterTimeout)
	defer cancel()
	if err := node.Ping(ctx).Err(); err != nil {
		return fmt.Errorf("ping redis: %w", err)
	}
	if node != s.client { // of a cluster; what is not well refuses every command
		info, err := node.ClusterInfo(ctx).Result()
		if err == nil && strings.Contains(info, "cluster_state:fail") {
			return errors.New("redis is part of a cluster that is down")
		}
	}
	config, err := node.ConfigGet(ctx, "maxmemory-policy").Result()
	if policy := config["maxmemory-policy"]; err == nil && policy != "" && policy != "noeviction" {
		return fmt.Errorf(
			"%w: it has maxmemory-policy %s, which must be noeviction, or it forgets what it sold",
			errUnsafe,
			policy,
		)
	}
	return nil
}

// Durable tells whether Redis, every master of it, keeps an append-only file; true where it does not say.
func (s *Store) Durable(ctx context.Context) bool {
	_, forgetting, _ := s.eachMaster(
		ctx,
		func(ctx context.Context, node redis.UniversalClient) error {
			config, err := node.ConfigGet(ctx, "appendonly").Result()
			if err == nil && config["appendonly"] == "no" {
				return errUnsafe
			}
			return nil
		},
	)
	return len(forgetting) == 0
}

// Memory tells what Redis uses and may use: used_memory and maxmemory of INFO memory. A server that does not tell (an
// embedded one) uses nothing. Of a cluster it is the fullest master's that answers.
func (s *Store) Memory(ctx context.Context) (reconcile.Memory, error) {
	if s.opts.Lease != "" { // no server of its own
		return reconcile.Memory{}, nil
	}
	var mu sync.Mutex
	var most reconcile.Memory
	asked, failed, err := s.eachMaster(
		ctx,
		func(ctx context.Context, node redis.UniversalClient) error {
			text, err := node.Info(ctx, "memory").Result()
			mu.Lock()
			defer mu.Unlock()
			if m := (reconcile.Memory{Used: infoField(text, "used_memory"), Most: infoField(text, "maxmemory")}); err == nil &&
				fuller(m, most) {
				most = m
			}
			return err
		},
	)
	if err == nil && len(failed) == asked {
		err = errors.Join(failed...)
	}
	if err != nil {
		return reconcile.Memory{}, fmt.Errorf("ask redis for its memory: %w", err)
	}
	return most, nil
}

// fuller compares by the share that is used; servers without a limit by what they use.
func fuller(a, b reconcile.Memory) bool {
	if a.Most > 0 && b.Most > 0 {
		return float64(a.Used)/float64(a.Most) > float64(b.Used)/float64(b.Most)
	}
	return a.Used > b.Used
}

// infoField reads a number of INFO; 0 where there is none.
func infoField(text, name string) int64 {
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			n, _ := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
			return n
		}
	}
	return 0
}
