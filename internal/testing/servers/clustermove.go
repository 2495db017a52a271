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

// SlotMove is a slot on its way from one master to another, done the way redis-cli --cluster reshard does it. While it is under way a
// client that asks the old master for a key that has gone is sent after it with ASK; a command on several keys of which some
// have gone, or have yet to come, gets TRYAGAIN.
type SlotMove struct {
	cluster  *RedisNodes
	slot     int
	From, To *RedisServer
	from, to clusterNode
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
	m := &SlotMove{cluster: c, slot: slot, From: from, To: to}
	if m.from, err = c.self(ctx, from); err != nil {
		return nil, err
	}
	if m.to, err = c.self(ctx, to); err != nil {
		return nil, err
	}
	// In this order: else a key could be asked for where it is not expected.
	if _, err := ask(ctx, to.addr, "CLUSTER", "SETSLOT", slot, "IMPORTING", m.from.id); err != nil {
		return nil, err
	}
	_, err = ask(ctx, from.addr, "CLUSTER", "SETSLOT", slot, "MIGRATING", m.to.id)
	return m, err
}

// Keys moves at most n of the slot's keys and reports how many it moved: 0 when none is left.
func (m *SlotMove) Keys(ctx context.Context, n int) (int, error) {
	answer, err := ask(ctx, m.From.addr, "CLUSTER", "GETKEYSINSLOT", m.slot, n)
	if err != nil {
		return 0, err
	}
	keys, _ := answer.([]any)
	if len(keys) == 0 {
		return 0, nil
	}
	host, port, err := net.SplitHostPort(m.To.addr)
	if err != nil {
		return 0, err
	}
	command := append([]any{"MIGRATE", host, port, "", 0, migratePatience.Milliseconds(), "KEYS"}, keys...)
	if _, err := ask(ctx, m.From.addr, command...); err != nil {
		return 0, err
	}
	return len(keys), nil
}

// Finish gives the slot to the new master: to itself first, then to the old one, then to all others that answer.
func (m *SlotMove) Finish(ctx context.Context) error {
	for _, node := range append([]*RedisServer{m.To, m.From}, m.cluster.Nodes...) {
		_, err := ask(ctx, node.addr, "CLUSTER", "SETSLOT", m.slot, "NODE", m.to.id)
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
	for {
		moved, err := move.Keys(ctx, 100)
		if err != nil {
			return err
		}
		if moved == 0 {
			return move.Finish(ctx)
		}
	}
}

// FailOver has a replica take its master's place in good order (CLUSTER FAILOVER), nothing lost, and returns when all agree.
func (c *RedisNodes) FailOver(ctx context.Context, replica *RedisServer) error {
	if _, err := ask(ctx, replica.addr, "CLUSTER", "FAILOVER"); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, clusterPatience)
	defer cancel()
	err := eventually(ctx, "the replica to be master", func() error {
		self, err := c.self(ctx, replica)
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
		self, err := c.self(ctx, node)
		if err != nil {
			return err
		}
		if !self.has("master") {
			continue
		}
		if _, err := ask(ctx, node.addr, "FLUSHALL"); err != nil {
			return err
		}
	}
	return nil
}
