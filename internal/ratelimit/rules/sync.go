package rules

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
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

// The keys that all nodes share. The scripts use several, so they share a hash tag.
const (
	nodesKey     = "ratelimit:{rules}:nodes"
	versionKey   = "ratelimit:{rules}:version"
	overridesKey = "ratelimit:{rules}:overrides"
)

// Sync reads the operators' limits into a Rulebook every 250 ms and counts the nodes. When Redis
// has lost the limits, or shows an older version of them after a failover, it writes them back. It
// is the only writer of its Rulebook. Polling needs no connection of its own and survives a
// failover, which a subscription does not notice.
type Sync struct {
	client  redis.UniversalClient
	book    *Rulebook
	scripts scripts
	id      string
	nodes   atomic.Int64
	running chan struct{} // holds a value while RunOnce runs; protects known
	known   []string      // the fields and values in Redis with the Rulebook's version, alternately
}

// scripts are those of scripts/lua whose names begin with ratelimit_.
type scripts struct{ sync, set, restore *redis.Script }

// NewSync makes a Sync with a random node id. It does nothing until Run or RunOnce.
func NewSync(client redis.UniversalClient, book *Rulebook) *Sync {
	load := func(name string) *redis.Script { return redis.NewScript(lua.Source(name)) }
	s := &Sync{
		client: client, book: book, id: rand.Text(), running: make(chan struct{}, 1),
		scripts: scripts{
			sync: load("ratelimit_sync"), set: load("ratelimit_set"),
			restore: load("ratelimit_restore"),
		},
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

// RunOnce reads changes into the Rulebook. Operators' requests may call it while Run does. A second
// call waits, because both write known. It waits as long as for Redis at most, because each of many
// calls before it may wait for a Redis that hangs.
func (s *Sync) RunOnce(ctx context.Context) error {
	select {
	case s.running <- struct{}{}:
		defer func() { <-s.running }()
	case <-time.After(syncTimeout):
		return errors.New("ratelimit: read changed limits: earlier calls wait for redis")
	}
	ctx, cancel := context.WithTimeout(ctx, syncTimeout)
	defer cancel()
	known := s.book.set.Load().version
	reply, err := s.scripts.sync.Run(ctx, s.client, []string{nodesKey, versionKey, overridesKey},
		s.id, known, nodeTTL).Slice()
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
	case version < known:
		return s.restore(ctx, known)
	}
	s.known = fields
	s.book.replace(version, readOverrides(fields))
	return nil
}

// runBeforeChange reads the limits that an operator's change begins with. A Redis without any may
// have lost them, and a change of a node that does not know them would replace them all. So it
// reads again after the other nodes have written them back.
func (s *Sync) runBeforeChange(ctx context.Context) error {
	err := s.RunOnce(ctx)
	if err == nil && s.book.set.Load().version == 0 {
		workers.Sleep(ctx, 2*syncEvery)
		err = s.RunOnce(ctx)
	}
	return err
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

// readOverrides decodes the operators' limits. A text that it cannot decode is an invalid limit.
func readOverrides(fields []string) map[string]map[string]ratelimit.Limit {
	limits := map[string]map[string]ratelimit.Limit{}
	for i := 0; i+1 < len(fields); i += 2 {
		name, key, ok := strings.Cut(fields[i], " ")
		if !ok {
			continue // written by a newer release
		}
		var limit ratelimit.Limit
		if json.Unmarshal([]byte(fields[i+1]), &limit) != nil {
			limit = ratelimit.Limit{}
		}
		if limits[name] == nil {
			limits[name] = map[string]ratelimit.Limit{}
		}
		limits[name][key] = limit
	}
	return limits
}

// restore writes the known limits back into a Redis that lost them or the last changes of them.
// Several nodes may do so: the newest version that one of them knows remains.
func (s *Sync) restore(ctx context.Context, version int64) error {
	args := []any{version}
	for _, text := range s.known {
		args = append(args, text)
	}
	keys := []string{versionKey, overridesKey}
	if err := s.scripts.restore.Run(ctx, s.client, keys, args...).Err(); err != nil {
		return fmt.Errorf("ratelimit: restore rules: %w", err)
	}
	return nil
}

func overrideField(rule, key string) string { return rule + " " + key }

// stored is an operator's limit as Redis had it at the last sync.
type stored struct {
	version int64
	text    string // "" if there is no limit
}

// stored returns the limit of a key at the last sync.
func (s *Sync) stored(rule, key string) stored {
	s.running <- struct{}{}
	defer func() { <-s.running }()
	was, field := stored{version: s.book.set.Load().version}, overrideField(rule, key)
	for i := 0; i+1 < len(s.known); i += 2 {
		if s.known[i] == field {
			was.text = s.known[i+1]
		}
	}
	return was
}

// set stores an operator's limit, or removes it if limit is nil, and raises the version. It does
// nothing and returns false if Redis no longer has the limit that was read before.
func (s *Sync) set(
	ctx context.Context, rule, key string, was stored, limit *ratelimit.Limit,
) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, syncTimeout)
	defer cancel()
	var text []byte
	if limit != nil {
		var err error
		if text, err = json.Marshal(limit); err != nil {
			return false, fmt.Errorf("ratelimit: set limit: %w", err)
		}
	}
	done, err := s.scripts.set.Run(ctx, s.client, []string{versionKey, overridesKey}, was.version,
		overrideField(rule, key), was.text, text).Bool()
	if err != nil {
		return false, fmt.Errorf("ratelimit: set limit: %w", err)
	}
	return done, nil
}
