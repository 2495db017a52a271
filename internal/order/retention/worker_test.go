package retention

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/seckill/salechange"
	"flashsale.dev/seckill/internal/testing/must"
)

// fakeStore has old rows of each kind. It fails for barriers. Its clock is an hour behind.
type fakeStore struct {
	rows   map[string]int
	before map[string]time.Time
	calls  []string
	above  []int64 // of the calls for tombstones
}

func (s *fakeStore) Now(context.Context) (time.Time, error) {
	return time.Now().Add(-time.Hour), nil
}

func (s *fakeStore) forget(kind string, before time.Time, limit int) (int, error) {
	s.before[kind], s.calls = before, append(s.calls, kind)
	found := min(s.rows[kind], limit)
	s.rows[kind] -= found
	return found, nil
}

func (s *fakeStore) Forget(
	_ context.Context, kind Kind, before time.Time, limit int,
) (int, error) {
	if kind == Barriers {
		s.before[string(kind)], s.calls = before, append(s.calls, string(kind))
		return 0, errors.New("down")
	}
	return s.forget(string(kind), before, limit)
}

func (s *fakeStore) ForgetTombstones(
	_ context.Context, before time.Time, above int64, limit int,
) (int, int64, error) {
	s.above = append(s.above, above)
	found, err := s.forget("tombstones", before, limit)
	return found, (above + 1) % 3, err
}

// TestWorker_TombstonesSaleBySale checks that each round goes on with the sales after the last
// ones, and begins again after the last sale. It repeats sales with more tombstones than a batch.
func TestWorker_TombstonesSaleBySale(t *testing.T) {
	s := &fakeStore{rows: map[string]int{"tombstones": 2*batch + 1}, before: map[string]time.Time{}}
	w := Worker{Store: s, Log: slog.New(slog.DiscardHandler)}
	for range 4 {
		w.runOnce(t.Context())
	}
	require.Equal(t, []int64{0, 0, 0, 1, 2, 0}, s.above)
}

// TestWorker_KindsTakeTurns checks that a round deletes all old rows in batches. A backlog of one
// kind delays no other, and a failing kind is called once. It also checks how old the rows of each
// kind are by the database's clock.
func TestWorker_KindsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakeStore{
			rows: map[string]int{
				"keys": 1, "moves": 10*batch + 1, "cuts": batch, "events": 1, "deliveries": 1,
				"tombstones": 0,
				"API keys":   1,
			},
			before: map[string]time.Time{},
		}
		w := Worker{Store: s, Log: slog.New(slog.DiscardHandler)}
		w.runOnce(t.Context())
		require.Equal(t, map[string]int{
			"keys": 0, "moves": 0, "cuts": 0, "events": 0, "deliveries": 0, "tombstones": 0,
			"API keys": 0,
		}, s.rows)
		require.ElementsMatch(t,
			[]string{
				"keys", "moves", "cuts", "barriers", "events", "deliveries", "API keys",
				"tombstones",
			},
			s.calls[:8], "each kind once before any a second time")
		require.Len(t, s.calls, 1+11+2+1+1+1+1+1)
		now := must.Get(s.Now(t.Context()))(t)
		require.Equal(t, map[string]time.Time{
			"keys":  now.Add(-salechange.IdempotencyTTL),
			"moves": now.Add(-keepWork), "cuts": now.Add(-keepWork),
			"barriers": now.Add(-keepWork),
			"events":   now.Add(-keepWork), "deliveries": now.Add(-keepWork),
			"API keys":   now.Add(-keepRevokedKeys),
			"tombstones": now.Add(-keepTombstones),
		}, s.before)
	})
}
