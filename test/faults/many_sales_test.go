package faults

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/loadgen/apiclient"
	"flashsale.dev/seckill/internal/testing/installation"
	"flashsale.dev/seckill/internal/testing/servers"
)

// manySalesFaults run eighteen more sales, and hit only some of them.
func manySalesFaults() []fault {
	cluster := installation.Options{Topology: installation.RedisCluster}
	among := func(name string, hit hitSome) fault {
		return fault{
			name: name, options: cluster, spread: 20 * time.Second, inject: amongManySales(hit),
		}
	}
	return []fault{
		among("redis-cluster-master-killed-many-sales", killOneMaster),
		among("redis-cluster-master-paused-many-sales", pauseOneMaster),
		among("redis-cluster-slot-moved-many-sales", moveOneSlot),
	}
}

// sideSale is one of many sales beside the run's own, and the answers to its only buyer.
type sideSale struct {
	goods  string
	master *servers.RedisServer // at its creation

	unavailable atomic.Pointer[apiclient.Answer] // the last 503, or nil: see keepBuying
	promised    atomic.Int64                     // units
}

// hitSome injects a fault. It returns a function that reports whether the fault hits a sale.
type hitSome func(t *testing.T, r *run) (hit func(*sideSale) bool)

// amongManySales injects a fault that hits some sales, and waits until those are rebuilt. Meanwhile
// the other sales must continue to sell, without a 503 and without a rebuild.
func amongManySales(inject hitSome) func(*testing.T, *run) {
	return func(t *testing.T, r *run) {
		sales := make([]*sideSale, 18)
		for i := range sales {
			goods := r.PutUp(t, 10_000, 1000) // which sets r.Redis to its master
			sales[i] = &sideSale{goods: goods, master: r.Redis}
		}
		r.master(t)
		ctx, cancel := context.WithCancel(t.Context())
		var buyers sync.WaitGroup
		for i, s := range sales {
			c := r.Buyer(t, 1<<42+int64(i))
			buyers.Go(func() { s.keepBuying(ctx, c) })
		}
		defer buyers.Wait()
		defer cancel()
		r.untilPromised(r.random(0.1, 0.4))
		requireAllSell(t, sales)
		hit := inject(t, r)
		began := time.Now()
		for _, s := range sales {
			if hit(s) {
				r.awaitEpoch(t, s.goods, 2, began.Add(rebuiltWithin))
			}
		}
		rebuilt := time.Since(began)
		requireAllSell(t, sales)
		cancel()
		buyers.Wait()
		n := r.requireOthersUntouched(t, sales, hit)
		t.Logf("%d of %d side sales were hit, and rebuilt within %s; the others never answered 503",
			n, len(sales), rebuilt.Round(time.Millisecond))
	}
}

// requireOthersUntouched requires the sales that a fault did not hit to have stayed open. Every
// ledger must balance. It returns how many sales were hit.
func (r *run) requireOthersUntouched(
	t *testing.T, sales []*sideSale, hit func(*sideSale) bool,
) int {
	t.Helper()
	n := 0
	for _, s := range sales {
		l := r.Drained(t, s.goods, patience)
		require.Equal(t, l.Total, l.Available+l.Sold, "%+v", l)
		if hit(s) {
			n++
			continue
		}
		require.Nil(t, s.unavailable.Load(), "goods %s of another master answered 503", s.goods)
		require.EqualValues(t, 1, l.Epoch, "goods %s of another master was rebuilt", s.goods)
	}
	require.Less(t, n, len(sales))
	return n
}

// requireAllSell waits until each of the sales has sold one more unit.
func requireAllSell(t *testing.T, sales []*sideSale) {
	t.Helper()
	for _, s := range sales {
		before := s.promised.Load()
		require.Eventually(t, func() bool { return s.promised.Load() > before },
			patience, 5*time.Millisecond, "goods %s sells nothing any more", s.goods)
	}
}

// keepBuying buys a unit ten times a second. A 503 does not count where RabbitMQ's confirm is late:
// no fault here touches RabbitMQ, and on a busy machine it may need more than a second.
func (s *sideSale) keepBuying(ctx context.Context, c apiclient.Client) {
	for ctx.Err() == nil {
		answer, err := buy(ctx, c, s.goods)
		switch {
		case err != nil: // the context has ended
		case strings.Contains(answer.Message, "not confirmed in time"):
		case answer.Status == http.StatusServiceUnavailable:
			s.unavailable.Store(&answer)
		case answer.Status == http.StatusAccepted:
			s.promised.Add(1)
		}
		_ = apiclient.Sleep(ctx, 100*time.Millisecond) // the loop ends with the context
	}
}

func killOneMaster(t *testing.T, r *run) func(*sideSale) bool {
	dead := r.master(t)
	require.NoError(t, dead.Kill())
	return func(s *sideSale) bool { return s.master == dead }
}

func pauseOneMaster(t *testing.T, r *run) func(*sideSale) bool {
	paused := r.master(t)
	pause(t, paused, 10*time.Second)
	return func(s *sideSale) bool { return s.master == paused }
}

// moveOneSlot moves the slot of the run's own sale, which is no side sale.
func moveOneSlot(t *testing.T, r *run) func(*sideSale) bool {
	r.moveSlot(t, r.otherMaster(t, r.master(t)), true)
	return func(*sideSale) bool { return false }
}
