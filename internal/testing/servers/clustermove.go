package servers

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// migratePatience limits MIGRATE of one batch of keys.
const migratePatience = 5 * time.Second

// SlotMove is the migration of a slot between two masters, as in redis-cli --cluster reshard.
// During the move the old master answers ASK for a key that has moved. A command on several keys
// gets TRYAGAIN if only some of them are at that master.
type SlotMove struct {
	cluster  *RedisNodes
	slot     int
	From, To *RedisServer
	newID    string // the new master's
}

// BeginMove marks a slot as migrating without moving a key.
func (c *RedisNodes) BeginMove(ctx context.Context, slot int, to *RedisServer) (*SlotMove, error) {
	from, err := c.MasterOfSlot(ctx, slot)
	if err != nil {
		return nil, err
	}
	source, err := from.self(ctx)
	if err != nil {
		return nil, err
	}
	target, err := to.self(ctx)
	if err != nil {
		return nil, err
	}
	// IMPORTING comes first. Otherwise the old master could redirect clients to a node that does
	// not expect them.
	if err := to.run(ctx, "CLUSTER", "SETSLOT", slot, "IMPORTING", source.id); err != nil {
		return nil, err
	}
	err = from.run(ctx, "CLUSTER", "SETSLOT", slot, "MIGRATING", target.id)
	return &SlotMove{cluster: c, slot: slot, From: from, To: to, newID: target.id}, err
}

// Keys moves at most n of the slot's keys and returns the number of moved keys. It returns 0 when
// no key is left.
func (m *SlotMove) Keys(ctx context.Context, n int) (int, error) {
	answer, err := m.From.ask(ctx, "CLUSTER", "GETKEYSINSLOT", m.slot, n)
	keys, _ := answer.([]any)
	if err != nil || len(keys) == 0 {
		return 0, err
	}
	host, port, _ := strings.Cut(m.To.addr, ":")
	command := []any{"MIGRATE", host, port, "", 0, migratePatience.Milliseconds(), "KEYS"}
	return len(keys), m.From.run(ctx, append(command, keys...)...)
}

// Finish moves the keys that are left and assigns the slot to the new master. It informs the new
// master first, then the old one, then all others that answer.
func (m *SlotMove) Finish(ctx context.Context) error {
	for moved := 1; moved > 0; {
		var err error
		if moved, err = m.Keys(ctx, 100); err != nil {
			return err
		}
	}
	for _, node := range append([]*RedisServer{m.To, m.From}, m.cluster.Nodes...) {
		err := node.run(ctx, "CLUSTER", "SETSLOT", m.slot, "NODE", m.newID)
		if err != nil && (node == m.To || node == m.From) {
			return err // the others, replicas included, learn it from these two
		}
	}
	return nil
}

// MoveSlot moves a slot with all its keys.
func (c *RedisNodes) MoveSlot(ctx context.Context, slot int, to *RedisServer) error {
	move, err := c.BeginMove(ctx, slot, to)
	if err != nil {
		return err
	}
	return move.Finish(ctx)
}

// FailOver promotes a replica in place of its master without loss (CLUSTER FAILOVER). It returns
// when all nodes agree.
func (c *RedisNodes) FailOver(ctx context.Context, replica *RedisServer) error {
	if err := replica.run(ctx, "CLUSTER", "FAILOVER"); err != nil {
		return err
	}
	err := await(ctx, clusterPatience, clusterPoll, func(ctx context.Context) error {
		self, err := replica.self(ctx)
		if err == nil && !self.has("master") {
			err = fmt.Errorf("%s is a replica still", replica.addr)
		}
		return err
	})
	if err != nil {
		return err
	}
	return c.Settled(ctx)
}

// FlushAll deletes all keys of every master. Loaded scripts remain.
func (c *RedisNodes) FlushAll(ctx context.Context) error {
	for _, node := range c.Nodes {
		self, err := node.self(ctx)
		if err == nil && self.has("master") {
			err = node.run(ctx, "FLUSHALL")
		}
		if err != nil {
			return err
		}
	}
	return nil
}
