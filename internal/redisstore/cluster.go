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

// eachMaster asks every master of a cluster at the same time, or the one server that there is, and returns what went wrong with some,
// and how many were asked. An error beside it means that not even the masters are known.
func (s *Store) eachMaster(
	ctx context.Context,
	ask func(ctx context.Context, node redis.UniversalClient) error,
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

// nodeOf is the server that has a goods' keys, as far as the client knows: some commands name no key by which a cluster
// would find it.
func (s *Store) masterOf(ctx context.Context, k keys) (redis.UniversalClient, error) {
	if cluster, ok := s.client.(*redis.ClusterClient); ok {
		return cluster.MasterForKey(ctx, k.sale())
	}
	return s.client, nil
}

// clock is the time by the server that has a goods' keys: its streams and scripts go by that one.
func (s *Store) serverTime(ctx context.Context, k keys) (time.Time, error) {
	node, err := s.masterOf(ctx, k)
	if err != nil {
		return time.Time{}, err
	}
	return node.Time(ctx).Result()
}

// errUnknownMaster says that a cluster sent us to a server that it does not list.
var errUnknownMaster = errors.New("redis: sent to a server that is no master")

// redirected reads where a cluster's answer sends a command: MOVED (for good), ASK (this time), or TRYAGAIN and CLUSTERDOWN (the
// same server, a moment later). ok is false where it is none of these: then nobody is to be asked again. In all four cases nothing happened.
func (s *Store) redirected(
	ctx context.Context,
	from redis.UniversalClient,
	said error,
) (to redis.UniversalClient, asking, ok bool, err error) {
	cluster, isCluster := s.client.(*redis.ClusterClient)
	switch {
	case said == nil || !isCluster:
		return nil, false, false, nil
	case redis.HasErrorPrefix(said, "TRYAGAIN"), redis.HasErrorPrefix(said, "CLUSTERDOWN"):
		return from, false, true, nil
	}
	words := strings.Fields(said.Error())
	if len(words) != 3 || words[0] != "MOVED" && words[0] != "ASK" {
		return nil, false, false, nil
	}
	to, err = masterAt(ctx, cluster, words[2])
	return to, words[0] == "ASK", err == nil, err
}

// masterAt finds a master by its address; it has the client look at the cluster anew.
func masterAt(
	ctx context.Context,
	cluster *redis.ClusterClient,
	addr string,
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
