package rules

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"flashsale.dev/seckill/internal/ratelimit"
	"flashsale.dev/seckill/scripts/lua"
)

const (
	syncEvery   = 250 * time.Millisecond
	syncTimeout = 500 * time.Millisecond
	goneAfter   = 5 // seconds
)

// The keys that all nodes share. One hash tag: the script needs all three.
const (
	nodesKey     = "ratelimit:{rules}:nodes"
	versionKey   = "ratelimit:{rules}:version"
	overridesKey = "ratelimit:{rules}:overrides"
)

// Sync brings what operators set to this node within 250 ms, counts the nodes
// and, after a Redis that lost everything, writes the overrides back. It is
// the one writer of its Rulebook.
type Sync struct {
	client redis.UniversalClient
	book   *Rulebook
	script *redis.Script
	id     string
	nodes  atomic.Int64
	turn   chan struct{} // one runOnce at a time
	known  map[string]map[string]ratelimit.Limit
}

// NewSync makes one; nothing happens until Run or RunOnce.
func NewSync(client redis.UniversalClient, book *Rulebook) *Sync {
	s := &Sync{client: client, book: book, script: redis.NewScript(lua.Source("ratelimit_sync")), id: rand.Text(), turn: make(chan struct{}, 1)}
	s.nodes.Store(1)
	return s
}

// Nodes is how many nodes were alive when Redis was last asked; at least 1.
func (s *Sync) Nodes() int { return int(s.nodes.Load()) }

// Run looks every 250 ms until ctx ends. Errors are told by report (which may
// be nil) and otherwise ignored: what is known holds until Redis is back.
func (s *Sync) Run(ctx context.Context, report func(error)) error {
	tick := time.NewTicker(syncEvery)
	defer tick.Stop()
	for {
		if err := s.RunOnce(ctx); err != nil && ctx.Err() == nil && report != nil {
			report(err)
		}
		select {
		case <-ctx.Done():
			return s.leave(ctx)
		case <-tick.C:
		}
	}
}

// leave takes this node out of the count at once.
func (s *Sync) leave(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), syncTimeout)
	defer cancel()
	if err := s.client.ZRem(ctx, nodesKey, s.id).Err(); err != nil {
		return fmt.Errorf("ratelimit: leave: %w", err)
	}
	return nil
}

// RunOnce looks once and puts what has changed into the Rulebook.
func (s *Sync) RunOnce(ctx context.Context) error {
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	ctx, cancel := context.WithTimeout(ctx, syncTimeout)
	defer cancel()
	known := s.book.set.Load().version
	reply, err := s.script.Run(ctx, s.client, []string{nodesKey, versionKey, overridesKey}, s.id, known, goneAfter).Slice()
	if err != nil {
		return fmt.Errorf("ratelimit: look for changed rules: %w", err)
	}
	nodes, version, fields, err := readSync(reply)
	if err != nil {
		return err
	}
	s.nodes.Store(max(1, nodes))
	switch {
	case version == known:
		return nil
	case version == 0 && len(fields) == 0:
		return s.restore(ctx, known)
	}
	s.known = readOverrides(fields)
	s.book.replace(version, s.known)
	return nil
}

func readSync(reply []any) (nodes, version int64, fields []string, err error) {
	if len(reply) < 2 {
		return 0, 0, nil, fmt.Errorf("ratelimit: sync: %d values", len(reply))
	}
	nodes, okNodes := reply[0].(int64)
	version, okVersion := reply[1].(int64)
	if !okNodes || !okVersion {
		return 0, 0, nil, errors.New("ratelimit: sync: not a number")
	}
	for _, v := range reply[2:] {
		text, _ := v.(string)
		fields = append(fields, text)
	}
	return nodes, version, fields, nil
}

func readOverrides(fields []string) map[string]map[string]ratelimit.Limit {
	limits := map[string]map[string]ratelimit.Limit{}
	for i := 0; i+1 < len(fields); i += 2 {
		name, key, ok := strings.Cut(fields[i], " ")
		var limit ratelimit.Limit
		if !ok || json.Unmarshal([]byte(fields[i+1]), &limit) != nil {
			continue // a newer program's: not for this one to judge
		}
		if limits[name] == nil {
			limits[name] = map[string]ratelimit.Limit{}
		}
		limits[name][key] = limit
	}
	return limits
}

// restore gives an emptied Redis what it lost. Every node has the same to give,
// so it does no harm that several do.
func (s *Sync) restore(ctx context.Context, version int64) error {
	pairs := []any{}
	for name, byKey := range s.known {
		for key, limit := range maps.All(byKey) {
			text, err := json.Marshal(limit)
			if err != nil {
				return fmt.Errorf("ratelimit: restore rules: %w", err)
			}
			pairs = append(pairs, overrideField(name, key), text)
		}
	}
	_, err := s.client.TxPipelined(ctx, func(p redis.Pipeliner) error {
		if len(pairs) > 0 {
			p.HSet(ctx, overridesKey, pairs...)
		}
		p.SetNX(ctx, versionKey, version, 0)
		return nil
	})
	if err != nil {
		return fmt.Errorf("ratelimit: restore rules: %w", err)
	}
	return nil
}

func overrideField(rule, key string) string { return rule + " " + key }

// set stores or (nil) removes an operator's limit and raises the version.
func (s *Sync) set(ctx context.Context, rule, key string, limit *ratelimit.Limit) error {
	ctx, cancel := context.WithTimeout(ctx, syncTimeout)
	defer cancel()
	_, err := s.client.TxPipelined(ctx, func(p redis.Pipeliner) error {
		if limit == nil {
			p.HDel(ctx, overridesKey, overrideField(rule, key))
		} else {
			text, err := json.Marshal(limit)
			if err != nil {
				return err
			}
			p.HSet(ctx, overridesKey, overrideField(rule, key), text)
		}
		p.Incr(ctx, versionKey)
		return nil
	})
	if err != nil {
		return fmt.Errorf("ratelimit: set limit: %w", err)
	}
	return nil
}
