package servers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"
)

// migratePatience bounds MIGRATE of one batch of keys.
const migratePatience = 5 * time.Second

// ErrSameMaster is returned for a slot that is to be moved to where it is.
var ErrSameMaster = errors.New("the slot is there already")

// SlotMove is a slot on its way from one master to another, done the way redis-cli --cluster
// reshard does it. While it is under way a client that asks the old master for a key that has gone
// is sent after it with ASK; a command on several keys of which some have gone, or have yet to
// come, gets TRYAGAIN.
type SlotMove struct {
	cluster  *RedisNodes
	slot     int
	From, To *RedisServer
	newID    string // the new master's
}

// BeginMove marks a slot as on its way, and moves no key.
func (c *RedisNodes) BeginMove(ctx context.Context, slot int, to *RedisServer) (*SlotMove, error) {
	from, err := c.MasterOfSlot(ctx, slot)
	if err != nil {
		return nil, err
	}
	if from == to {
		return nil, fmt.Errorf("move slot %d: %w", slot, ErrSameMaster)
	}
	source, err := from.self(ctx)
	if err != nil {
		return nil, err
	}
	target, err := to.self(ctx)
	if err != nil {
		return nil, err
	}
	// In this order: else a key could be asked for where it is not expected.
	if err := to.run(ctx, "CLUSTER", "SETSLOT", slot, "IMPORTING", source.id); err != nil {
		return nil, err
	}
	err = from.run(ctx, "CLUSTER", "SETSLOT", slot, "MIGRATING", target.id)
	return &SlotMove{cluster: c, slot: slot, From: from, To: to, newID: target.id}, err
}

// Keys moves at most n of the slot's keys and reports how many it moved: 0 when none is left.
func (m *SlotMove) Keys(ctx context.Context, n int) (int, error) {
	answer, err := m.From.ask(ctx, "CLUSTER", "GETKEYSINSLOT", m.slot, n)
	keys, _ := answer.([]any)
	if err != nil || len(keys) == 0 {
		return 0, err
	}
	host, port, err := net.SplitHostPort(m.To.addr)
	if err != nil {
		return 0, err
	}
	command := []any{"MIGRATE", host, port, "", 0, migratePatience.Milliseconds(), "KEYS"}
	return len(keys), m.From.run(ctx, append(command, keys...)...)
}

// Finish gives the slot to the new master: to itself first, then to the old one, then to all others
// that answer.
func (m *SlotMove) Finish(ctx context.Context) error {
	for _, node := range append([]*RedisServer{m.To, m.From}, m.cluster.Nodes...) {
		err := node.run(ctx, "CLUSTER", "SETSLOT", m.slot, "NODE", m.newID)
		if err != nil && (node == m.To || node == m.From) {
			return err // the others, replicas among them, hear of it from these
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
	for moved := 1; moved > 0; {
		if moved, err = move.Keys(ctx, 100); err != nil {
			return err
		}
	}
	return move.Finish(ctx)
}

// FailOver has a replica take its master's place in good order (CLUSTER FAILOVER), nothing lost,
// and returns when all agree.
func (c *RedisNodes) FailOver(ctx context.Context, replica *RedisServer) error {
	if err := replica.run(ctx, "CLUSTER", "FAILOVER"); err != nil {
		return err
	}
	patient, cancel := context.WithTimeout(ctx, clusterPatience)
	defer cancel()
	err := await(patient, clusterPoll, func() error {
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

// FlushAll empties every master. The scripts that they know stay.
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
