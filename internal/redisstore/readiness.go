package redisstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"flashsale.dev/seckill/internal/cause"
	"flashsale.dev/seckill/internal/order/reconcile"
)

// Readiness counts the masters of a Redis deployment.
type Readiness struct {
	Masters     int   // of a cluster; 1 where Redis is one server
	Unavailable int   // masters that do not answer, or whose cluster is down
	NoWrites    error // why a master takes no writes; nil while one is down
}

// UnfitError means that a Redis server answers but must not, or cannot, hold a sale.
type UnfitError struct {
	Problem string // with the remedy, for /readyz: it names no host and no user
	Host    string
	Remedy  string // for the log
}

// Cause returns the problem, for the package cause.
func (e *UnfitError) Cause() string { return e.Problem }

// Error returns the problem, the host and the remedy.
func (e *UnfitError) Error() string {
	return fmt.Sprintf("redis at %s is not fit: %s (%s)", e.Host, e.Problem, e.Remedy)
}

// masterTimeout bounds the check of one master; all are checked concurrently.
const masterTimeout = 400 * time.Millisecond

// CheckReadiness checks that Redis answers and is no replica, and that it lets the scripts read
// INFO. A single address must be neither of a sentinel nor of a cluster. The eviction policy must
// be noeviction: a server that evicts keys loses reservations and oversells. A server that hides
// its policy (embedded, managed) is accepted. Of a cluster one answering master is enough, and each
// master that answers must be fit. The error of one that answers and is not fit is an *UnfitError.
func (s *Store) CheckReadiness(ctx context.Context) (Readiness, error) {
	asked, failed, err := eachMaster(ctx, s.client, s.checkMaster)
	f := Readiness{Masters: asked, Unavailable: len(failed)}
	for _, why := range failed {
		if _, unfit := errors.AsType[*UnfitError](why); unfit || f.Unavailable == f.Masters {
			err = errors.Join(err, why)
		}
	}
	if err == nil && f.Unavailable == 0 {
		f.NoWrites = s.checkWrites(ctx)
	}
	return f, err
}

// checkWrites checks that every master takes writes. An embedded server does.
func (s *Store) checkWrites(ctx context.Context) error {
	if s.opts.Lease != "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, masterTimeout)
	defer cancel()
	_, failed, _ := eachMaster(ctx, s.client, checkWrites)
	return errors.Join(failed...)
}

// writeProbe is a script that may write and does not. A server refuses it, like every such script,
// if it is full, can't save its data or has too few replicas. The script returns false if the ACL
// user may write neither a key of a sale nor one of a limiter.
const writeProbe = `#!lua
return redis.acl_check_cmd('SET', 'sk:{0}', '') or redis.acl_check_cmd('SET', 'ratelimit:{0}', '')`

// checkWrites checks that one server takes writes. One that does not know the script, because it is
// no Redis 7, counts as such.
func checkWrites(ctx context.Context, node redis.UniversalClient) error {
	err := node.Eval(ctx, writeProbe, nil).Err()
	if errors.Is(err, redis.Nil) { // Redis' false
		err = cause.With(errors.New("the ACL user may not run SET"), cause.Denied)
	}
	switch cause.Of(err) {
	case "", cause.Other:
		return nil
	case cause.Silent: // CLIENT PAUSE WRITE, also during FAILOVER
		err = cause.With(err, "it takes no writes in time")
	}
	host, _ := identityOf(node)
	return fmt.Errorf("redis at %s takes no writes: %w", host, err)
}

// checkMaster checks one master. A master of a failed cluster refuses every command, so it counts
// as down.
func (s *Store) checkMaster(ctx context.Context, node redis.UniversalClient) error {
	ctx, cancel := context.WithTimeout(ctx, masterTimeout)
	defer cancel()
	if err := pingMaster(ctx, node); err != nil {
		return err
	}
	if node != s.client { // a master of a cluster
		info, err := node.ClusterInfo(ctx).Result()
		if err == nil && strings.Contains(info, "cluster_state:fail") {
			return cause.With(errors.New("redis is part of a cluster that is down"),
				"the cluster is down")
		}
	}
	host, user := identityOf(node)
	info := node.Info(ctx, "replication")
	if node == s.client {
		if err := checkKind(ctx, node, host, info.Val()); err != nil {
			return err
		}
	} else if isReplica(info.Val()) { // the client's map of a cluster is older than a failover
		return fmt.Errorf("redis at %s is a replica now", host)
	}
	if s.opts.Lease == "" && redis.HasErrorPrefix(info.Err(), "NOPERM") {
		return &UnfitError{
			Problem: "the ACL user may not run INFO: ACL SETUSER its name +info",
			Host:    host, Remedy: "ACL SETUSER " + user + " +info",
		}
	}
	// INFO, because many users may not run CONFIG.
	memory := node.Info(ctx, "memory").Val()
	if policy := infoText(memory, "maxmemory_policy"); policy != "" && policy != "noeviction" {
		return &UnfitError{
			Problem: "maxmemory-policy must be noeviction, or Redis forgets what it sold",
			Host:    host, Remedy: "CONFIG SET maxmemory-policy noeviction, and in the file",
		}
	}
	return nil
}

// CheckServer checks that Redis answers, takes writes and, where it is one server, has every key.
// The error of a server of another kind is an *UnfitError. Of a cluster the error names each master
// that does not answer, or takes no writes.
func CheckServer(ctx context.Context, client redis.UniversalClient) error {
	_, failed, err := eachMaster(ctx, client, pingMaster)
	if err := errors.Join(append(failed, err)...); err != nil {
		return err
	}
	if _, single := client.(*redis.Client); single {
		host, _ := identityOf(client)
		err := checkKind(ctx, client, host, client.Info(ctx, "replication").Val())
		if err != nil {
			return err
		}
	}
	_, failed, _ = eachMaster(ctx, client, checkWrites)
	return errors.Join(failed...)
}

// pingMaster checks that one server answers. A server that can't save its data refuses even PING.
func pingMaster(ctx context.Context, node redis.UniversalClient) error {
	err := node.Ping(ctx).Err()
	if err == nil || redis.HasErrorPrefix(err, "MISCONF") {
		return nil
	}
	if errors.Is(err, redis.Nil) { // the sentinels' answer for a master that they do not know
		err = cause.With(err,
			"the sentinels know no such master: correct SECKILL_REDIS_SENTINEL_MASTER")
	}
	host, _ := identityOf(node)
	return fmt.Errorf("ping redis at %s: %w", host, err)
}

func isReplica(replication string) bool { return strings.Contains(replication, "role:slave") }

// checkKind checks that the only server is no replica, and neither a sentinel, which holds no keys,
// nor a node of a cluster. Such a node refuses the sales of its peers, and sells on its own after a
// failover. Redis reports its kind as redis_mode, Valkey as server_mode.
func checkKind(
	ctx context.Context, node redis.UniversalClient, host, replication string,
) error {
	switch text := node.Info(ctx, "server").Val(); {
	case isReplica(replication):
		return &UnfitError{
			Problem: "it is a replica and takes no writes", Host: host,
			Remedy: "name the master in SECKILL_REDIS_ADDRS, or promote this server",
		}
	case strings.Contains(text, "_mode:sentinel"):
		return &UnfitError{
			Problem: "it is a sentinel: set SECKILL_REDIS_SENTINEL_MASTER", Host: host,
			Remedy: "or name the master in SECKILL_REDIS_ADDRS",
		}
	case strings.Contains(text, "_mode:cluster"):
		return &UnfitError{
			Problem: "it is a node of a Redis Cluster: list several in SECKILL_REDIS_ADDRS",
			Host:    host, Remedy: "or write its single address twice",
		}
	}
	return nil
}

// identityOf returns the address of a server and the ACL user of its client.
func identityOf(node redis.UniversalClient) (host, user string) {
	client, ok := node.(*redis.Client)
	if !ok {
		return "", ""
	}
	host = client.Options().Addr
	if host == "FailoverClient" { // the client's word where it asks sentinels for the address
		host = "the address that the sentinels report"
	}
	return host, cmp.Or(client.Options().Username, "default")
}

// Durable reports whether every master keeps an append-only file. A server that does not report it
// counts as durable.
func (s *Store) Durable(ctx context.Context) bool {
	check := func(ctx context.Context, node redis.UniversalClient) error {
		if infoText(node.Info(ctx, "persistence").Val(), "aof_enabled") == "0" {
			return errors.New("appendonly no")
		}
		return nil
	}
	_, forgetting, _ := eachMaster(ctx, s.client, check)
	return len(forgetting) == 0
}

// Memory returns used_memory and maxmemory of INFO, in bytes; for a cluster those of the fullest
// master. A server that reports none (embedded) counts as zero.
func (s *Store) Memory(ctx context.Context) (reconcile.Memory, error) {
	if s.opts.Lease != "" { // no server of its own
		return reconcile.Memory{}, nil
	}
	var mu sync.Mutex
	var most reconcile.Memory
	read := func(ctx context.Context, node redis.UniversalClient) error {
		text, err := node.Info(ctx, "memory").Result()
		m := reconcile.Memory{
			Used: infoField(text, "used_memory"), Most: infoField(text, "maxmemory"),
		}
		mu.Lock()
		defer mu.Unlock()
		if err == nil && fuller(m, most) {
			most = m
		}
		return err
	}
	asked, failed, err := eachMaster(ctx, s.client, read)
	if err == nil && len(failed) == asked {
		err = errors.Join(failed...)
	}
	if err != nil {
		return reconcile.Memory{}, fmt.Errorf("ask redis for its memory: %w", err)
	}
	return most, nil
}

// fuller compares the used shares, or the used bytes of servers without a limit.
func fuller(a, b reconcile.Memory) bool {
	if a.Most > 0 && b.Most > 0 {
		return float64(a.Used)/float64(a.Most) > float64(b.Used)/float64(b.Most)
	}
	return a.Used > b.Used
}

// infoField reads a number of INFO; 0 where it is missing.
func infoField(text, name string) int64 {
	n, _ := strconv.ParseInt(infoText(text, name), 10, 64)
	return n
}

// infoText reads a field of INFO; "" where it is missing.
func infoText(text, name string) string {
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
