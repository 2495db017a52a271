package servers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testing/must"
)

// ErrNoMaster reports that no answering node is master of a slot.
var ErrNoMaster = errors.New("no node that answers is its master")

// viewPatience limits a node's answer about the cluster, because a paused node never answers.
const viewPatience = time.Second

// clusterNode is one line of CLUSTER NODES (https://redis.io/docs/latest/commands/cluster-nodes/).
type clusterNode struct {
	id, addr, busPort string
	flags             []string
	master            string // the master's id, or "-"
	epoch             int64
	linked            bool
	slots             []string // "0-5460", "7", or "[…]" for a slot in migration
}

func (n clusterNode) has(flag string) bool { return slices.Contains(n.flags, flag) }

func (n clusterNode) owns(slot int) bool {
	return slices.ContainsFunc(n.slots, func(text string) bool {
		var first, last int
		if read, _ := fmt.Sscanf(text, "%d-%d", &first, &last); read < 2 {
			last = first
		}
		return text[0] != '[' && first <= slot && slot <= last
	})
}

func parseNode(line string) (clusterNode, error) {
	f := strings.Fields(line)
	if len(f) < 8 {
		return clusterNode{}, fmt.Errorf("a line of CLUSTER NODES that cannot be read: %q", line)
	}
	epoch, err := strconv.ParseInt(f[6], 10, 64)
	addr, busPort, _ := strings.Cut(f[1], "@")
	busPort, _, _ = strings.Cut(busPort, ",")
	return clusterNode{
		id: f[0], addr: addr, busPort: busPort, flags: strings.Split(f[2], ","), master: f[3],
		epoch: epoch, linked: f[7] == "connected", slots: f[8:],
	}, err
}

// view returns the cluster as a node sees it.
func (r *RedisServer) view(ctx context.Context) (view []clusterNode, err error) {
	ctx, cancel := context.WithTimeout(ctx, viewPatience)
	defer cancel()
	text, err := r.askText(ctx, "CLUSTER", "NODES")
	for line := range strings.Lines(text) {
		node, problem := parseNode(line)
		view, err = append(view, node), errors.Join(err, problem)
	}
	return view, err
}

// fingerprint returns the masters, their slots and their replicas as a text, which is equal for all
// nodes that agree. It omits failed nodes, and migrating slots, which only the node itself reports.
func fingerprint(view []clusterNode) string {
	var lines []string
	for _, n := range view {
		if !n.has("fail") && !n.has("noaddr") {
			own := slices.DeleteFunc(slices.Clone(n.slots), func(s string) bool {
				return strings.HasPrefix(s, "[")
			})
			lines = append(lines,
				fmt.Sprintln(n.id, n.master, n.has("fail?"), strings.Join(own, " ")))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}

// self returns a node's line about itself.
func (r *RedisServer) self(ctx context.Context) (clusterNode, error) {
	view, err := r.view(ctx)
	if err != nil {
		return clusterNode{}, err
	}
	at := slices.IndexFunc(view, func(n clusterNode) bool { return n.has("myself") })
	if at < 0 {
		return clusterNode{}, fmt.Errorf("%s does not know itself", r.addr)
	}
	view[at].addr = r.addr
	return view[at], nil
}

// SlotOf returns the slot of a key.
func (c *RedisNodes) SlotOf(ctx context.Context, key string) (int, error) {
	var last error
	for _, node := range c.Nodes {
		answer, err := node.ask(ctx, "CLUSTER", "KEYSLOT", key)
		if slot, ok := answer.(int64); err == nil && ok {
			return int(slot), nil
		}
		last = err
	}
	return 0, fmt.Errorf("slot of %q: %w", key, last)
}

// MasterOf returns the current master of a key.
func (c *RedisNodes) MasterOf(ctx context.Context, key string) (*RedisServer, error) {
	slot, err := c.SlotOf(ctx, key)
	if err != nil {
		return nil, err
	}
	return c.MasterOfSlot(ctx, slot)
}

// MasterOfSlot reads every node's own view. If two nodes claim the slot, the one with the higher
// epoch is the master.
func (c *RedisNodes) MasterOfSlot(ctx context.Context, slot int) (*RedisServer, error) {
	var master *RedisServer
	newest := int64(-1)
	for _, node := range c.Nodes {
		if !node.Running() {
			continue
		}
		self, err := node.self(ctx) // skips nodes that do not answer
		if err == nil && self.has("master") && self.owns(slot) && self.epoch > newest {
			master, newest = node, self.epoch
		}
	}
	if master == nil {
		return nil, fmt.Errorf("slot %d: %w", slot, ErrNoMaster)
	}
	return master, nil
}

// ReplicasOf returns the nodes that report a node as their master.
func (c *RedisNodes) ReplicasOf(ctx context.Context, master *RedisServer) ([]*RedisServer, error) {
	owner, err := master.self(ctx)
	if err != nil {
		return nil, err
	}
	var replicas []*RedisServer
	for _, node := range c.Nodes {
		if self, err := node.self(ctx); err == nil && self.master == owner.id {
			replicas = append(replicas, node)
		}
	}
	return replicas, nil
}

// Masters returns the nodes that claim at least one slot.
func (c *RedisNodes) Masters(ctx context.Context) ([]*RedisServer, error) {
	var masters []*RedisServer
	for _, node := range c.Nodes {
		if self, err := node.self(ctx); err == nil && self.has("master") && len(self.slots) > 0 {
			masters = append(masters, node)
		}
	}
	if len(masters) == 0 {
		return nil, ErrNoMaster
	}
	return masters, nil
}

// KeyOn returns a key in a slot of the given master.
func (c *RedisNodes) KeyOn(tb testing.TB, node *RedisServer) string {
	tb.Helper()
	for i := range 1000 {
		key := fmt.Sprintf("{%d}", i)
		if must.Get(c.MasterOf(tb.Context(), key))(tb) == node {
			return key
		}
	}
	require.Fail(tb, "no key is kept on "+node.Addr())
	return ""
}
