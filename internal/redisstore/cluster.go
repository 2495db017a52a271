package redisstore

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// eachMaster calls ask for every master of a cluster concurrently, or for the only server. It
// returns the number of calls and the errors of those that failed; err means that the masters are
// unknown.
func eachMaster(
	ctx context.Context, client redis.UniversalClient,
	ask func(ctx context.Context, node redis.UniversalClient) error,
) (asked int, failed []error, err error) {
	cluster, ok := client.(*redis.ClusterClient)
	if !ok {
		if err := ask(ctx, client); err != nil {
			failed = append(failed, err)
		}
		return 1, failed, nil
	}
	var mu sync.Mutex
	err = cluster.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error {
		err := ask(ctx, node)
		mu.Lock()
		defer mu.Unlock()
		if asked++; err != nil {
			failed = append(failed, err)
		}
		return nil
	})
	return asked, failed, err
}

// masterOf returns the server that holds a goods' keys, for commands that name no key.
func (s *Store) masterOf(ctx context.Context, k keys) (redis.UniversalClient, error) {
	if cluster, ok := s.client.(*redis.ClusterClient); ok {
		return cluster.MasterForKey(ctx, k.sale())
	}
	return s.client, nil
}

// serverTime returns the time of the server that holds a goods' keys. Its streams and scripts use
// this clock.
func (s *Store) serverTime(ctx context.Context, k keys) (time.Time, error) {
	node, err := s.masterOf(ctx, k)
	if err != nil {
		return time.Time{}, err
	}
	return node.Time(ctx).Result()
}

// readMasters reads again which master of a cluster holds which slot.
func (s *Store) readMasters(ctx context.Context) error {
	_, _, err := eachMaster(ctx, s.client, func(context.Context, redis.UniversalClient) error {
		return nil
	})
	return err
}

// notExecuted reports whether a cluster's answer proves that it did not execute a command: its slot
// has another master, or moves there, or the cluster has no master for it.
func notExecuted(err error) bool {
	return slices.ContainsFunc([]string{"MOVED", "ASK", "TRYAGAIN", "CLUSTERDOWN"},
		func(prefix string) bool { return redis.HasErrorPrefix(err, prefix) })
}
