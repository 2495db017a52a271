package installation

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/testing/must"
	"flashsale.dev/seckill/internal/testing/servers"
)

// shards is the default of SECKILL_ORDER_SHARDS.
const shards = 4

// startRabbit starts a broker or a cluster, or uses the suite's.
func (r *Installation) startRabbit(t testing.TB, suite *servers.Suite, o Options) {
	switch {
	case o.Topology.Has(RabbitCluster) && o.OwnRabbit:
		r.Rabbits = servers.RabbitCluster(t)
	case o.Topology.Has(RabbitCluster):
		r.Rabbits = suite.RabbitCluster(t)
	case o.OwnRabbit:
		r.Rabbit = servers.RabbitMQ(t)
	default:
		r.Rabbit = suite.RabbitMQ(t)
	}
	if r.Rabbits == nil {
		r.AMQP = r.Rabbit.NewVHost(t)
		return
	}
	r.Rabbit = r.Rabbits.Nodes[0]
	r.AMQP = r.Rabbits.URLs(r.Rabbits.NewVHost(t))[0]
}

// amqpURLs returns the virtual host's URLs, one for each node.
func (r *Installation) amqpURLs(t testing.TB) []string {
	if r.Rabbits == nil {
		return []string{r.AMQP}
	}
	return r.Rabbits.URLs(r.vhost(t))
}

func (r *Installation) amqpHosts(t testing.TB) (hosts []string) {
	for _, address := range r.amqpURLs(t) {
		u := must.Get(url.Parse(address))(t)
		hosts = append(hosts, u.Host)
	}
	return hosts
}

// OrderQueue returns the name of the queue for a goods' orders.
func OrderQueue(t testing.TB, goodsID string) string {
	return fmt.Sprint("seckill.orders.", order.Shard(Number(t, goodsID), shards))
}

// SelectRabbit sets Rabbit to the node that leads a goods' queue, and waits until the queue has a
// leader. It does not change a single broker.
func (r *Installation) SelectRabbit(t testing.TB, goodsID string) {
	if r.Rabbits == nil {
		return
	}
	queue, vhost := OrderQueue(t, goodsID), r.vhost(t)
	r.eventually(t, "a leader of "+queue, func(ctx context.Context) error {
		leader, err := r.Rabbits.Leader(ctx, vhost, queue)
		if err == nil {
			r.Rabbit = leader
		}
		return err
	})
}

// MoveQueueLeader makes another node the leader of a goods' queue and sets Rabbit to that node.
func (r *Installation) MoveQueueLeader(t testing.TB, goodsID string, to *servers.RabbitServer) {
	require.NoError(t, r.Rabbits.MoveLeader(t.Context(), r.vhost(t), OrderQueue(t, goodsID), to))
	r.Rabbit = to
}

// rabbitUp returns a node whose HTTP API is available.
func (r *Installation) rabbitUp() *servers.RabbitServer {
	if r.Rabbits == nil || r.Rabbit.Running() {
		return r.Rabbit
	}
	return r.Rabbits.Others(r.Rabbit)[0]
}

// RecreateVHost creates the installation's vhost again, as an operator does after a broker lost its
// disk.
func (r *Installation) RecreateVHost(t testing.TB) {
	require.NoError(t, r.rabbitUp().Manage(t.Context(), http.MethodPut, "/api/vhosts/"+r.vhost(t),
		nil))
}

func (r *Installation) vhost(t testing.TB) string {
	u := must.Get(url.Parse(r.AMQP))(t)
	return strings.TrimPrefix(u.Path, "/")
}
