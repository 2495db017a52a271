package faults

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/loadgen/apiclient"
	"flashsale.dev/seckill/internal/testenv"
	"flashsale.dev/seckill/test/rig"
)

// openWithin is how long sales may be shut when their master has died: the node timeout, a vote (up to 2 s), and a rebuild.
const openWithin = 15 * time.Second

// aside is one of many sales beside the rush, and one buyer who goes on buying it.
type aside struct {
	goods  string
	master *testenv.RedisServer // when it was put up
	mu     sync.Mutex
	busy   int    // answers with 503
	why    string // the last of them said
	bought int    // units promised
}

// sellsElsewhere wants a harm to leave sales alone whose slots it does not touch: while it is done and until those that it shut are open
// again, they never answer 503 and go on selling; and no gate but those is shut.
func sellsElsewhere(harm func(t *testing.T, s *scene) (hit func(*aside) bool)) func(*testing.T, *scene) {
	return func(t *testing.T, s *scene) {
		sales := s.putUpAside(t, 18)
		ctx, cancel := context.WithCancel(t.Context())
		var buyers sync.WaitGroup
		for i, a := range sales {
			c := s.Buyer(t, 1<<42+int64(i))
			buyers.Go(func() { a.buyOn(ctx, c) })
		}
		defer buyers.Wait()
		defer cancel()
		s.until(s.between(0.1, 0.4))
		allSell(t, sales)
		hit := harm(t, s)
		began := time.Now()
		for _, a := range sales {
			if hit(a) {
				s.opens(t, a, began)
			}
		}
		opened := time.Since(began)
		allSell(t, sales)
		cancel()
		buyers.Wait()
		shut := 0
		for _, a := range sales {
			l := s.Drained(t, a.goods, patience)
			require.Equal(t, l.Total, l.Available+l.Sold, "%+v", l)
			if hit(a) {
				shut++
				continue
			}
			require.Zero(t, a.busy, "goods %s answered 503 (%s), and its master is another", a.goods, a.why)
			require.EqualValues(t, 1, l.Epoch, "goods %s was rebuilt, and its master is another", a.goods)
		}
		t.Logf("%d of %d sales beside the rush were shut and open again within %s; the others never answered 503",
			shut, len(sales), opened.Round(time.Millisecond))
		require.Less(t, shut, len(sales))
	}
}

// allSell waits until each of the sales has sold one more.
func allSell(t *testing.T, sales []*aside) {
	t.Helper()
	for _, a := range sales {
		before := a.sold()
		require.Eventually(t, func() bool { return a.sold() > before }, patience, 5*time.Millisecond, "goods %s sells nothing any more", a.goods)
	}
}

func (a *aside) sold() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.bought
}

// putUpAside puts up so many sales, wherever their slots are.
func (s *scene) putUpAside(t *testing.T, n int) []*aside {
	t.Helper()
	sales := make([]*aside, n)
	for i := range sales {
		sales[i] = &aside{goods: s.PutUp(t, 10_000, 1000)}
		sales[i].master = s.Redis
	}
	s.keeper(t)
	return sales
}

// buyOn buys a unit ten times a second.
func (a *aside) buyOn(ctx context.Context, c apiclient.Client) {
	for ctx.Err() == nil {
		a.buy(ctx, c)
		select {
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func (a *aside) buy(ctx context.Context, c apiclient.Client) {
	var grant struct{ RandomPath string }
	answer, err := c.Call(ctx, http.MethodPost, "/randomPath?goodsId="+a.goods, nil)
	if err == nil && answer.Into(&grant) == nil {
		answer, err = c.Call(ctx, http.MethodPost, "/"+grant.RandomPath+"/decrStock?goodsId="+a.goods, nil)
	}
	if err != nil {
		return // the test is over
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	switch answer.Status {
	case http.StatusServiceUnavailable:
		a.busy, a.why = a.busy+1, answer.Message
	case http.StatusAccepted:
		a.bought++
	}
}

// opens waits until a sale that was shut has begun a new epoch.
func (s *scene) opens(t *testing.T, a *aside, since time.Time) {
	t.Helper()
	c := s.Merchant(t)
	for {
		l, err := c.Ledger(t.Context(), a.goods)
		if err == nil && l.Epoch > 1 {
			return
		}
		require.Less(t, time.Since(since), openWithin, "goods %s: %+v %v", a.goods, l, err)
		s.lasts(20 * time.Millisecond)
	}
}

func manySalesHarms() []harm {
	cluster := rig.Options{Land: rig.Land{RedisCluster: true}}
	return []harm{
		{name: "redis-cluster-master-killed-many-sales", rig: cluster, over: 20 * time.Second, do: sellsElsewhere(killOneMaster)},
		{name: "redis-cluster-master-paused-many-sales", rig: cluster, over: 20 * time.Second, do: sellsElsewhere(pauseOneMaster)},
		{name: "redis-cluster-slot-moved-many-sales", rig: cluster, over: 20 * time.Second, do: sellsElsewhere(moveOneSlot)},
	}
}

func killOneMaster(t *testing.T, s *scene) func(*aside) bool {
	t.Helper()
	dead := s.keeper(t)
	require.NoError(t, dead.Kill())
	return func(a *aside) bool { return a.master == dead }
}

func pauseOneMaster(t *testing.T, s *scene) func(*aside) bool {
	t.Helper()
	hangs := s.keeper(t)
	pause(t, s, hangs, 10*time.Second)
	return func(a *aside) bool { return a.master == hangs }
}

// moveOneSlot moves that of the rush, with a rest where it is half moved.
func moveOneSlot(t *testing.T, s *scene) func(*aside) bool {
	t.Helper()
	s.moveSlot(t, s.another(t, s.keeper(t)), true)
	return func(a *aside) bool { return a.goods == s.goods }
}
