package catalog_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/catalog"
	"flashsale.dev/seckill/internal/seckill/reservation"
)

// trip is how long the tests' Redis takes for an answer.
const trip = 2 * time.Millisecond

// shelf is a Redis of one sale, whose clock is an hour ahead of this node's. In a bubble of synctest all times are exact.
type shelf struct {
	mu    sync.Mutex
	view  seckill.View
	looks atomic.Int64
}

func newShelf(change func(*seckill.View)) *shelf {
	s := &shelf{view: seckill.View{Available: 10, Sale: seckill.Sale{
		GoodsID: 42, Epoch: 1, Status: seckill.Exposed, StartAt: redisClock().Add(-time.Hour), EndAt: redisClock().Add(time.Hour),
	}}}
	s.change(change)
	return s
}

func redisClock() time.Time { return time.Now().Add(time.Hour).Truncate(time.Millisecond) }

func (s *shelf) change(how func(*seckill.View)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	how(&s.view)
}

// View is read in the middle of the trip.
func (s *shelf) View(context.Context, int64) (seckill.View, error) {
	s.looks.Add(1)
	time.Sleep(trip / 2)
	defer time.Sleep(trip / 2)
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.view
	v.Now = redisClock()
	return v, nil
}

func (s *shelf) IssuePaths(_ context.Context, _, epoch int64, _ time.Duration, _ []reservation.PathGrant) (time.Time, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if epoch != s.view.Epoch {
		return time.Time{}, &seckill.GateError{State: seckill.GateEpoch, Epoch: s.view.Epoch}
	}
	if s.view.Gate != seckill.GateOpen {
		return time.Time{}, &seckill.GateError{State: s.view.Gate, Epoch: s.view.Epoch}
	}
	return redisClock(), s.view.CheckSelling(redisClock(), s.view.Available)
}

func (s *shelf) Sale(context.Context, int64) (seckill.Sale, error) { return s.view.Sale, nil }
func (s *shelf) ExposedSales(context.Context, int64, int) ([]seckill.Sale, error) {
	return []seckill.Sale{s.view.Sale}, nil
}

// rush has buyers ask all the time, ten every millisecond, until told to stop, and keeps what the last of them was told and when.
type rush struct {
	mu       sync.Mutex
	answers  int
	waited   int                          // askers whose answer took a time
	reasons  map[seckill.Reason]time.Time // when a reason ("" for a welcome) was first told
	finished sync.WaitGroup
}

func rushOn(ctx context.Context, shop *catalog.Catalog) *rush {
	r := &rush{reasons: make(map[seckill.Reason]time.Time)}
	for range 10 {
		r.finished.Go(func() {
			for ctx.Err() == nil {
				began := time.Now()
				err := shop.KnownRefusal(42) // as the API asks
				if err == nil {
					_, err = shop.Admit(context.Background(), 42)
				}
				r.note(seckill.ReasonOf(err), time.Since(began))
				time.Sleep(time.Millisecond)
			}
		})
	}
	return r
}

func (r *rush) note(reason seckill.Reason, took time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answers++
	if took > 0 {
		r.waited++
	}
	if _, told := r.reasons[reason]; !told {
		r.reasons[reason] = time.Now()
	}
}

// first is when a reason was first told; a test that waits for one that never comes fails.
func (r *rush) first(t *testing.T, reason seckill.Reason) time.Time {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	at, told := r.reasons[reason]
	require.True(t, told, "nobody was told %q", reason)
	return at
}

func shopOf(s *shelf) *catalog.Catalog {
	return catalog.NewCatalog(catalog.NewSaleReader(s, s), s, s)
}

// during runs a rush, lets something happen after 100 ms, and goes on for 200 more.
func during(t *testing.T, s *shelf, happens func(*seckill.View)) (r *rush, at time.Time) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	r = rushOn(ctx, shopOf(s))
	time.Sleep(100 * time.Millisecond)
	s.change(happens)
	at = time.Now()
	time.Sleep(200 * time.Millisecond)
	stop()
	r.finished.Wait()
	return r, at
}

// late is how much later than it happened a thing may be heard of: what was seen before may be told for a Moment, and then it
// takes a trip to see it, which a trip under way may hold up.
const late = catalog.ViewTTL + 2*trip

func TestInARushFewAnswersAskRedis(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf(func(v *seckill.View) { v.Available = 0 })
		r, _ := during(t, s, func(*seckill.View) {})
		require.Greater(t, r.answers, 1000)
		require.Less(t, float64(s.looks.Load())/float64(r.answers), 0.02)
		require.Len(t, r.reasons, 1)
		r.first(t, seckill.SoldOut)
	})
}

// Only who renews the view waits for Redis; the others go on with the one before.
func TestInALongRushHardlyAnybodyWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf(func(v *seckill.View) { v.Available = 0 })
		r, _ := during(t, s, func(*seckill.View) {})
		require.Less(t, r.waited, 2*10+int(s.looks.Load()), "ten when it began, and who renewed")
	})
}

func TestUnitsThatCameBackAreSeenWithinAMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf(func(v *seckill.View) { v.Available = 0 })
		r, back := during(t, s, func(v *seckill.View) { v.Available = 1 })
		require.LessOrEqual(t, r.first(t, "").Sub(back), late)
	})
}

func TestAClosedSaleIsSeenWithinAMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf(func(*seckill.View) {})
		r, closed := during(t, s, func(v *seckill.View) { v.Status = seckill.Closed })
		require.LessOrEqual(t, r.first(t, seckill.Ended).Sub(closed), late)
	})
}

func TestAShutGateIsSeenWithinAMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf(func(*seckill.View) {})
		r, shut := during(t, s, func(v *seckill.View) { v.Gate = seckill.GateShut })
		require.LessOrEqual(t, r.first(t, seckill.Unavailable).Sub(shut), late)
	})
}

func TestAShutGateIsNotRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf(func(v *seckill.View) { v.Gate = seckill.GateLease })
		r, opened := during(t, s, func(v *seckill.View) { v.Gate = seckill.GateOpen })
		require.LessOrEqual(t, r.first(t, "").Sub(opened), 2*trip)
	})
}

// A sale opens and ends by Redis' clock, to the millisecond, however many look at it.
func TestNeitherOpeningNorEndIsDelayed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now().Add(130*time.Millisecond + 300*time.Microsecond)
		end := start.Add(77 * time.Millisecond)
		s := newShelf(func(v *seckill.View) { v.StartAt, v.EndAt = start.Add(time.Hour), end.Add(time.Hour) })
		r, _ := during(t, s, func(*seckill.View) {})
		opened, ended := r.first(t, ""), r.first(t, seckill.Ended)
		require.GreaterOrEqual(t, opened, start)
		require.LessOrEqual(t, opened.Sub(start), 2*trip+time.Millisecond)
		require.LessOrEqual(t, ended.Sub(end), 2*trip+time.Millisecond)
	})
}

func TestWhoAsksAloneIsToldHowThingsStand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf(func(*seckill.View) {})
		shop := shopOf(s)
		for units := range int64(20) {
			s.change(func(v *seckill.View) { v.Available = units })
			v, err := shop.Sale(t.Context(), 42)
			require.NoError(t, err)
			require.Equal(t, units, v.Available)
		}
	})
}

// The sale is rebuilt while a node still remembers the epoch before: its buyers get paths of the new one.
func TestAPathIsGivenAcrossARebuild(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf(func(*seckill.View) {})
		shop := shopOf(s)
		v, err := shop.Admit(t.Context(), 42)
		require.NoError(t, err)
		s.change(func(v *seckill.View) { v.Epoch++ })
		path, expires, err := shop.IssuePath(t.Context(), v, 7)
		require.NoError(t, err)
		require.NoError(t, reservation.CheckPath(path))
		require.True(t, expires.After(redisClock()))
	})
}

// Redis refuses a path: what the node remembered is wrong, and the next buyer is not let in by it.
func TestARefusedPathEndsTheMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf(func(*seckill.View) {})
		shop := shopOf(s)
		ctx, stop := context.WithCancel(t.Context())
		r := rushOn(ctx, shop)
		time.Sleep(4 * trip)
		stop()
		r.finished.Wait()
		s.change(func(v *seckill.View) { v.Available = 0 })
		v, err := shop.Admit(t.Context(), 42)
		require.NoError(t, err, "out of the memory")
		_, _, err = shop.IssuePath(t.Context(), v, 7)
		require.Equal(t, seckill.SoldOut, seckill.ReasonOf(err))
		_, err = shop.Admit(t.Context(), 42)
		require.Equal(t, seckill.SoldOut, seckill.ReasonOf(err))
	})
}
