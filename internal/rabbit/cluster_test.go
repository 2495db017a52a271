package rabbit_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/rabbit"
	"flashsale.dev/seckill/internal/testing/must"
	"flashsale.dev/seckill/internal/testing/servers"
)

// onCluster is a cluster of three nodes on which a publisher has marked all shards.
type onCluster struct {
	nodes    *servers.RabbitNodes
	vhost    string
	opt      rabbit.Options
	reported queueReports
}

// TestPublisher_OnACluster runs its parts on one cluster, because starting a cluster takes many
// seconds.
func TestPublisher_OnACluster(t *testing.T) {
	t.Parallel() // the test mostly waits for the nodes
	nodes := servers.RabbitCluster(t)
	c := onCluster{nodes: nodes, vhost: nodes.NewVHost(t), reported: make(queueReports, 64)}
	c.opt = rabbit.Options{URLs: nodes.URLs(c.vhost), Shards: 4, OnNewQueue: c.reported.add}
	p := runPublisher(t, c.opt)
	c.reported.await(t, 0, 1, 2, 3)
	for shard := range c.opt.Shards {
		require.NoError(t, p.MarkRepublished(t.Context(), shard))
	}
	t.Run("every shard has three members, and every node leads one", c.spread)
	t.Run("a node dies under load and loses its disk: nothing confirmed is lost, no shard is new",
		func(t *testing.T) { c.loseNode(t, p) })
	t.Run("a node is cut off: publishers leave it", c.cutOff)
}

func (c onCluster) queue() string {
	return fmt.Sprint("seckill.orders.", order.Shard(goods, c.opt.Shards))
}

func (c onCluster) leader(t *testing.T) (leader *servers.RabbitServer) {
	t.Helper()
	eventually(t, func() (found bool) {
		var err error
		leader, err = c.nodes.Leader(t.Context(), c.vhost, c.queue())
		return err == nil
	}, "the queue has no leader")
	return leader
}

func (c onCluster) spread(t *testing.T) {
	leaders := map[string]bool{}
	for shard := range c.opt.Shards {
		state := must.Get(c.nodes.Nodes[0].QueueState(t.Context(), c.vhost,
			fmt.Sprint("seckill.orders.", shard)))(t)
		require.Len(t, state.Members, 3)
		leaders[state.Leader] = true
	}
	require.Len(t, leaders, 3)
}

func (c onCluster) loseNode(t *testing.T, p *rabbit.Publisher) {
	source := openSource(t, c.opt)
	load := startLoad(t, p, sameGoods(8)...)
	load.await(200)
	leader := c.leader(t)
	syncQueueNames(t, leader)
	require.NoError(t, leader.Kill())
	killed := time.Now()
	c.startAtOnce(t)
	load.await(len(load.confirmed()) + 200)
	t.Logf("200 more confirmed %v after its leader was killed", time.Since(killed))
	require.NoError(t, leader.RestartEmpty(t.Context()))
	load.await(len(load.confirmed()) + 200)
	// The reconnected publisher has reported its shards by now. New publishers must find the marks
	// on every node.
	for range c.nodes.Nodes {
		runPublisher(t, c.opt)
	}
	require.Empty(t, c.reported, "a publisher reported a node's lost disk as a broker's lost data")
	takeAll(t, source, order.Shard(goods, c.opt.Shards), load.stop())
}

// startAtOnce starts publishers while the queue has no leader. All must publish after the election.
// RabbitMQ 3.10.8 nacks everything on a channel whose first message arrived before the election.
func (c onCluster) startAtOnce(t *testing.T) {
	t.Helper()
	var starting errgroup.Group
	for range 8 {
		p := runPublisher(t, c.opt)
		starting.Go(func() error { return firstConfirm(t.Context(), p) })
	}
	require.NoError(t, starting.Wait())
}

func (c onCluster) cutOff(t *testing.T) {
	var publishers []*rabbit.Publisher
	for range 4 {
		publishers = append(publishers, runPublisher(t, c.opt))
	}
	cut := c.leader(t)
	c.nodes.CutOff(cut)
	defer c.nodes.Heal(cut)
	began := time.Now()
	for _, p := range publishers {
		awaitPublish(t, p)
	}
	t.Logf("all publishers go on %v after the cut", time.Since(began))
}
