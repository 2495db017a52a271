package seckill

import (
	"context"

	"golang.org/x/sync/errgroup"
)

// looksAtOnce is how many buckets of a sale are looked at side by side.
const looksAtOnce = 16

// Whole is a sale as people know it, all of its buckets together: NotFound where there is none or it is a draft, and for a
// bucket's own id, which nobody outside is told. Its buckets are not of one instant, as they are on several servers.
func (f *Front) Whole(ctx context.Context, goodsID int64) (View, error) {
	l, err := wholeOf(ctx, goodsID, f.look)
	return l.View, err
}

// wholeOf puts a sale together of looks at its buckets.
func wholeOf(ctx context.Context, goodsID int64, look1 func(context.Context, int64) (look, error)) (look, error) {
	if IsBucket(goodsID) {
		return look{}, noSuchSale()
	}
	ids := BucketsOf(goodsID)
	if len(ids) == 1 {
		return look1(ctx, goodsID)
	}
	looks := make([]look, len(ids))
	var g errgroup.Group
	g.SetLimit(looksAtOnce)
	for i, id := range ids {
		g.Go(func() (err error) {
			looks[i], err = look1(ctx, id)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return look{}, err
	}
	return together(looks), nil
}

// together adds buckets up. What they have in common is the first one's; the gate is open where all are, the epoch is the
// highest, and of moments the oldest counts.
func together(looks []look) look {
	sum := looks[0]
	sum.Others, sum.Thirst = 0, Thirst{}
	for _, l := range looks[1:] {
		sum.company = min(sum.company, l.company)
		sum.Total, sum.Stock, sum.Available = sum.Total+l.Total, sum.Stock+l.Stock, sum.Available+l.Available
		sum.Pending, sum.Sold, sum.Outbox = sum.Pending+l.Pending, sum.Sold+l.Sold, sum.Outbox+l.Outbox
		sum.Epoch, sum.Retired = max(sum.Epoch, l.Epoch), sum.Retired && l.Retired
		if sum.Gate == GateOpen {
			sum.Gate = l.Gate
		}
		if l.Pending > 0 && (sum.Pending == l.Pending || l.PendingSince.Before(sum.PendingSince)) {
			sum.PendingSince = l.PendingSince
		}
		if l.Outbox > 0 && (sum.Outbox == l.Outbox || l.OldestAt.Before(sum.OldestAt)) {
			sum.OldestAt = l.OldestAt
		}
		if l.began.Before(sum.began) {
			sum.began, sum.Now = l.began, l.Now
		}
	}
	return sum
}

func noSuchSale() error { return Refuse(NotFound, "there is no such sale") }
