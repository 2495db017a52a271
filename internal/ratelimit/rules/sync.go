package rules

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"flashsale.dev/seckill/internal/ratelimit"
	"flashsale.dev/seckill/internal/workers"
	"flashsale.dev/seckill/scripts/lua"
)

// A quarter of a second keeps the promise that a change reaches every node within one. A node that
// has ended unexpectedly counts for five seconds more.
const (
	syncEvery   = 250 * time.Millisecond
	syncTimeout = 500 * time.Millisecond
	nodeTTL     = 5 // seconds
)

// The keys that all nodes share. The script uses all three, so they share a hash tag.
const (
	nodesKey     = "ratelimit:{rules}:nodes"
	versionKey   = "ratelimit:{rules}:version"
	overridesKey = "ratelimit:{rules}:overrides"
)

// Sync reads the operators' limits into a Rulebook every 250 ms and counts the nodes. When Redis
// has lost the limits it writes them back. It is the only writer of its Rulebook. Polling needs no
// connection of its own and survives a failover, which a subscription does not notice.
type Sync struct {
	client  redis.UniversalClient
	book    *Rulebook
	script  *redis.Script
	id      string
	nodes   atomic.Int64
	running sync.Mutex // held by RunOnce
	known   map[string]map[string]ratelimit.Limit
}

// NewSync makes a Sync with a random node id. It does nothing until Run or RunOnce.
func NewSync(client redis.UniversalClient, book *Rulebook) *Sync {
	s := &Sync{
		client: client, book: book, script: redis.NewScript(lua.Source("ratelimit_sync")),
		id: rand.Text(),
	}
	s.nodes.Store(1)
	return s
}

// Nodes is the number of nodes in Redis at the last sync; at least 1.
func (s *Sync) Nodes() int { return int(s.nodes.Load()) }

// Run syncs every 250 ms until ctx ends, and passes errors to report. Until Redis answers again
// the last known limits apply. Run returns nil.
func (s *Sync) Run(ctx context.Context, report func(error)) error {
	_ = workers.Every(ctx, syncEvery, func(ctx context.Context) { // ends with ctx alone
		if err := s.RunOnce(ctx); err != nil && ctx.Err() == nil {
			report(err)
		}
	})
	if err := s.leave(ctx); err != nil {
		report(err) // Redis removes this node itself after nodeTTL, so the program ends well
	}
	return nil
}

// leave removes this node from the count at once. Otherwise the share of each other node would stay
// too small for nodeTTL.
func (s *Sync) leave(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), syncTimeout)
	defer cancel()
	if err := s.client.ZRem(ctx, nodesKey, s.id).Err(); err != nil {
		return fmt.Errorf("ratelimit: leave: %w", err)
	}
	return nil
}

// RunOnce reads changes into the Rulebook. An operator's request may call it while Run does. The
// second call waits, because both write known.
func (s *Sync) RunOnce(ctx context.Context) error {
	s.running.Lock()
	defer s.running.Unlock()
	ctx, cancel := context.WithTimeout(ctx, syncTimeout)
	defer cancel()
	known := s.book.set.Load().version
	reply, err := s.script.Run(ctx, s.client, []string{nodesKey, versionKey, overridesKey}, s.id,
		known, nodeTTL).Slice()
	if err != nil {
		return fmt.Errorf("ratelimit: read changed limits: %w", err)
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
	s.known = readOverrides(fields, s.known)
	s.book.replace(version, s.known)
	return nil
}

// readSync decodes the script's answer.
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

// readOverrides decodes the operators' limits. It keeps limits that this release cannot compile, so
// that restore does not lose them. A text that it cannot decode leaves the key's limit of before.
func readOverrides(
	fields []string, before map[string]map[string]ratelimit.Limit,
) map[string]map[string]ratelimit.Limit {
	limits := map[string]map[string]ratelimit.Limit{}
	for i := 0; i+1 < len(fields); i += 2 {
		name, key, ok := strings.Cut(fields[i], " ")
		if !ok {
			continue // written by a newer release
		}
		var limit ratelimit.Limit
		if json.Unmarshal([]byte(fields[i+1]), &limit) != nil {
			if limit, ok = before[name][key]; !ok {
				continue
			}
		}
		if limits[name] == nil {
			limits[name] = map[string]ratelimit.Limit{}
		}
		limits[name][key] = limit
	}
	return limits
}

// restore writes the limits back into a Redis that lost them. Several nodes may do so, because all
// write the same. SETNX keeps the version of a node that was faster, or of an operator who has
// changed a limit since.
func (s *Sync) restore(ctx context.Context, version int64) error {
	pairs := []any{}
	for name, byKey := range s.known {
		for key, limit := range byKey {
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

// set stores an operator's limit, or removes it if limit is nil, and raises the version.
func (s *Sync) set(ctx context.Context, rule, key string, limit *ratelimit.Limit) error {
	ctx, cancel := context.WithTimeout(ctx, syncTimeout)
	defer cancel()
	text, err := json.Marshal(limit)
	if err != nil {
		return fmt.Errorf("ratelimit: set limit: %w", err)
	}
	_, err = s.client.TxPipelined(ctx, func(p redis.Pipeliner) error {
		if limit == nil {
			p.HDel(ctx, overridesKey, overrideField(rule, key))
		} else {
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
