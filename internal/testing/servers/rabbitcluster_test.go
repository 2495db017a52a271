//go:build clusters

package servers_test

import (
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testing/must"
	"flashsale.dev/seckill/internal/testing/servers"
)

// TestRabbitCluster_WholeLife checks one cluster step by step, because a start takes many seconds.
func TestRabbitCluster_WholeLife(t *testing.T) {
	t.Parallel()
	cluster := servers.RabbitCluster(t)
	vhost := cluster.NewVHost(t)
	urls := cluster.URLs(vhost)
	publish(t, urls[0], "hello")
	t.Run("a queue has a member on every node, and its leader moves", func(t *testing.T) {
		for _, node := range cluster.Nodes {
			require.NoError(t, cluster.MoveLeader(t.Context(), vhost, "orders", node))
			leader := must.Get(cluster.Leader(t.Context(), vhost, "orders"))(t)
			require.Equal(t, node.Name(), leader.Name())
		}
		place := must.Get(cluster.Nodes[0].Place(t.Context(), vhost, "orders"))(t)
		require.Len(t, place.Members, 3)
	})
	t.Run("a node that is cut off refuses clients, the others go on without it",
		func(t *testing.T) {
			cluster.CutOff(cluster.Nodes[0])
			require.Eventually(t, func() bool {
				return !reachable(urls[0])
			}, time.Minute, 50*time.Millisecond)
			requireMessage(t, urls[1])
			leader := must.Get(cluster.Leader(t.Context(), vhost, "orders"))(t)
			require.NotEqual(t, cluster.Nodes[0].Name(), leader.Name())
			cluster.Heal(cluster.Nodes[0])
			require.NoError(t, cluster.AwaitWhole(t.Context()))
			require.Eventually(t, func() bool {
				return reachable(urls[0])
			}, time.Minute, 50*time.Millisecond)
		})
}

func reachable(url string) bool {
	conn, err := amqp.DialConfig(url, amqp.Config{Dial: amqp.DefaultDial(time.Second)})
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}
