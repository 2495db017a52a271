package faults

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/rush"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/testing/installation"
)

// bucket is the goods id of a buyer's bucket; the sale's own where its stock is whole.
func (s *scene) bucket(t *testing.T, buyer int64) int64 {
	t.Helper()
	return seckill.BucketOf(s.goodsID(t), buyer)
}

// still tells whether no units of a split sale are on their way from one bucket to another, and each bucket of one that is on has been
// told what the others have: a unit that somebody gives back is known to the mover's next look, and until then his neighbours may be told
// that there is none.
func (s *scene) still(t *testing.T, f installation.RedisFacts) bool {
	t.Helper()
	if s.split <= 1 {
		return true
	}
	m := s.Facts(t, s.goods)
	return m.NotGiven == 0 && m.OpenCuts == 0 && (f.Unaware == 0 || time.Now().After(s.end))
}

// sweep has buyers of one bucket, of the seed's choice, come for all that a split sale has left, in whatever bucket it is: as
// many as there are units, so that a single one that cannot be found leaves one of them without. It tells whether it did: a sale that
// is over sells nothing more.
func (s *scene) sweep(t *testing.T, report *rush.Report) bool {
	t.Helper()
	if s.split <= 1 || time.Now().After(s.end) {
		return false
	}
	l, err := s.ledger(t)
	require.NoError(t, err)
	if l.Available == 0 {
		return true
	}
	bucket := s.rng.IntN(int(s.split))
	swept, err := rush.Run(t.Context(), rush.Plan{
		GoodsID: s.goods, Buyers: int(l.Available), AtOnce: 200, ID: installation.Neighbours(t, s.goods, bucket, 1<<42), Token: s.BuyerToken,
		Bases: []string{s.Base(0), s.Base(1)}, Stubborn: true, Patience: patience, CallTimeout: 5 * time.Second,
	})
	require.NoError(t, err)
	t.Logf("buyers of bucket %d came for the last %d units: %d won, in %s, told to come again %d times", bucket, l.Available,
		swept.Count(rush.Won), swept.Took.Round(time.Millisecond), swept.Sum(func(t rush.Told) int { return t.Busy }))
	report.Told = append(report.Told, swept.Told...)
	s.calm(t)
	return true
}
