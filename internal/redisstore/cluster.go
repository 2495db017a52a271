package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// eachMaster calls ask for every master of a cluster concurrently, or for the only server. It
// returns the number of calls and the errors of those that failed; err means that the masters are
// unknown.
func (s *Store) eachMaster(
	ctx context.Context, ask func(ctx context.Context, node redis.UniversalClient) error,
) (asked int, failed []error, err error) {
	cluster, ok := s.client.(*redis.ClusterClient)
	if !ok {
		if err := ask(ctx, s.client); err != nil {
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

// serverTime returns the time of the server that holds a goods' keys; streams and scripts use it.
func (s *Store) serverTime(ctx context.Context, k keys) (time.Time, error) {
	node, err := s.masterOf(ctx, k)
	if err != nil {
		return time.Time{}, err
	}
	return node.Time(ctx).Result()
}

// errUnknownMaster means that a redirection names a server that the cluster does not list.
var errUnknownMaster = errors.New("redis: sent to a server that is no master")

// redirected evaluates a cluster's redirection: MOVED (permanent), ASK (this command only),
// TRYAGAIN and CLUSTERDOWN (the same server, later). In all four cases Redis did not execute the
// command. ok is false for any other error, after which the caller must not repeat the command.
func (s *Store) redirected(
	ctx context.Context, from redis.UniversalClient, cause error,
) (to redis.UniversalClient, asking, ok bool, err error) {
	cluster, isCluster := s.client.(*redis.ClusterClient)
	switch {
	case cause == nil || !isCluster:
		return nil, false, false, nil
	case redis.HasErrorPrefix(cause, "TRYAGAIN"), redis.HasErrorPrefix(cause, "CLUSTERDOWN"):
		return from, false, true, nil
	}
	words := strings.Fields(cause.Error())
	if len(words) != 3 || words[0] != "MOVED" && words[0] != "ASK" {
		return nil, false, false, nil
	}
	to, err = masterAt(ctx, cluster, words[2])
	return to, words[0] == "ASK", err == nil, err
}

// masterAt finds a master by its address after refreshing the client's view of the cluster.
func masterAt(
	ctx context.Context, cluster *redis.ClusterClient, addr string,
) (redis.UniversalClient, error) {
	var mu sync.Mutex
	var found redis.UniversalClient
	err := cluster.ForEachMaster(ctx, func(_ context.Context, node *redis.Client) error {
		mu.Lock()
		defer mu.Unlock()
		if node.Options().Addr == addr {
			found = node
		}
		return nil
	})
	if err == nil && found == nil {
		err = fmt.Errorf("%w: %s", errUnknownMaster, addr)
	}
	return found, err
}
