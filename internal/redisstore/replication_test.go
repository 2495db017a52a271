package redisstore

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/seckill/reservation"
	"flashsale.dev/seckill/internal/testing/must"
	"flashsale.dev/seckill/internal/testing/servers"
)

// replicated returns a store that waits up to 20 s for one replica, a store that waits 10 ms, and
// the replica.
func replicated(t *testing.T) (patient, hasty fixture, follower *servers.RedisServer) {
	t.Helper()
	master := servers.Redis(t, "repl-diskless-sync-delay 0")
	host, port, err := net.SplitHostPort(master.Addr())
	require.NoError(t, err)
	replica := servers.Redis(t, "replicaof "+host+" "+port)
	client := redis.NewClient(&redis.Options{Addr: master.Addr(), ReadTimeout: 40 * time.Second})
	t.Cleanup(func() { _ = client.Close() })
	waiting := func(d time.Duration) fixture {
		return fixture{New(client, Options{WaitReplicas: 1, WaitTimeout: d}), t}
	}
	return waiting(20 * time.Second), waiting(10 * time.Millisecond), replica
}

// TestReserve_ReportsMissingReplicas checks that the store reports a reservation that too few
// replicas have. A retry reports it again until the replica is back. The store sends a script again
// that Redis has forgotten.
func TestReserve_ReportsMissingReplicas(t *testing.T) {
	s, hasty, replica := replicated(t)
	s.load(onSale(10, 2))
	first := reservationOf(1, 7, 1)
	// A restart has the same effect. A pipeline of EVALSHA must send the script itself.
	require.NoError(t, s.client.ScriptFlush(t.Context()).Err())
	g := must.Get(s.reserveIn(1, first))(t)
	require.NoError(t, g.NotReplicated)
	require.Equal(t, reservation.Taken, g.Verdicts[0].Code)
	require.NoError(t, replica.Kill())
	second := reservationOf(2, 7, 1)
	g = must.Get(hasty.reserveIn(1, second))(t)
	require.ErrorIs(t, g.NotReplicated, errTooFewReplicas)
	require.ErrorContains(t, g.NotReplicated, "SECKILL_REDIS_WAIT_REPLICAS: 0 of 1",
		"a purchase logs it, and readiness only asks the master")
	require.Equal(t, reservation.Taken, g.Verdicts[0].Code,
		"the master keeps the reservation")

	g = must.Get(hasty.reserveIn(1, second))(t)
	require.Equal(t, reservation.Repeated, g.Verdicts[0].Code)
	require.ErrorIs(t, g.NotReplicated, errTooFewReplicas,
		"a retry does not replicate the reservation")
	require.NoError(t, replica.Restart(t.Context()))
	g = must.Get(s.reserveIn(1, second))(t)
	require.NoError(t, g.NotReplicated, "the replica is back")
	require.Equal(t, second.OrderSn, g.Verdicts[0].OrderSn)
}

// TestAdopt_ReportsMissingReplicas checks that the store returns no units of an adoption that too
// few replicas have, although the master keeps them. A repeat returns them once the replica is
// back, and takes none twice.
func TestAdopt_ReportsMissingReplicas(t *testing.T) {
	s, hasty, replica := replicated(t)
	s.load(onSale(10, 2))
	late := []reservation.OrderLine{{OrderSn: "a", BuyerID: "7", Quantity: 2}}
	require.NoError(t, replica.Kill())
	for range 2 {
		units, err := hasty.Adopt(t.Context(), goods, 1, 2, late)
		require.ErrorIs(t, err, errTooFewReplicas)
		require.Empty(t, units)
		hasty.requireUnits(8, 2, 0)
	}
	require.NoError(t, replica.Restart(t.Context()))
	require.Equal(t, map[string]int64{"a": 2},
		must.Get(s.Adopt(t.Context(), goods, 1, 2, late))(t), "the replica is back")
	s.requireUnits(8, 2, 0)
}

// TestReserve_MasterWithoutReplicasTakesNothing checks that a master that is cut off from its
// replicas takes nothing if min-replicas-to-write is set. A replica may have been promoted
// meanwhile.
func TestReserve_MasterWithoutReplicasTakesNothing(t *testing.T) {
	_, s, replica := replicated(t)
	s.load(onSale(10, 2))
	require.Equal(t, reservation.Taken,
		must.Get(s.reserveIn(1, reservationOf(1, 7, 1)))(t).Verdicts[0].Code)
	config := s.client.Do(t.Context(), "CONFIG", "SET", "min-replicas-to-write", 1,
		"min-replicas-max-lag", 1)
	require.NoError(t, config.Err())
	require.NoError(t, replica.Kill())
	require.Eventually(t, func() bool {
		err := s.client.Set(t.Context(), "anything", 1, 0).Err()
		return err != nil && strings.Contains(err.Error(), "NOREPLICAS")
	}, time.Minute, 10*time.Millisecond)
	_, err := s.Adopt(t.Context(), goods, 1, 0,
		[]reservation.OrderLine{{OrderSn: "a", BuyerID: "9", Quantity: 1}})
	require.ErrorContains(t, err, "NOREPLICAS")
	_, err = s.reserveIn(1, reservationOf(2, 8, 1))
	require.ErrorContains(t, err, "NOREPLICAS")
	require.EqualValues(t, 9, s.view().Available, "a refused script writes nothing")
}
