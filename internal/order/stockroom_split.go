package order

import (
	"cmp"
	"context"
	"slices"

	"flashsale.dev/seckill/internal/seckill"
)

// gatherTries is how often units are gathered that buyers buy away again.
const gatherTries = 5

// begin makes the first step of a change. A cut of a split sale is cut out of its own bucket, all of it at once, so that it is
// made whole or not at all: what that bucket lacks is gathered from the others before, which changes nothing for
// anybody but where the units lie.
func (s *Stockroom) begin(ctx context.Context, sale seckill.Sale, c seckill.Change, once seckill.Once) (b Begun, err error) {
	if sale.Status == seckill.Exposed && c.StockDelta < 0 && seckill.Buckets(sale.GoodsID) > 1 {
		if err := s.gather(ctx, sale.GoodsID, -c.StockDelta); err != nil {
			return b, err
		}
	}
	err = again(ctx, func() error { b, err = s.store.Change(ctx, sale.GoodsID, c, once, s.now()); return err })
	return b, err
}

// gather carries units to a sale's own bucket until it has so many; Conflict where there are not so many unsold.
func (s *Stockroom) gather(ctx context.Context, goodsID, units int64) error {
	for range gatherTries {
		buckets, unsold, err := s.unsold(ctx, goodsID)
		if err != nil {
			return seckill.Down("the units unsold can't be counted", err)
		}
		if unsold < units {
			return seckill.TooLargeACut(unsold)
		}
		missing := units - buckets[0].Available
		if missing <= 0 {
			return nil
		}
		others := buckets[1:]
		slices.SortFunc(others, func(a, b seckill.View) int { return cmp.Compare(b.Available, a.Available) })
		for _, from := range others {
			some := min(missing, from.Available)
			if some <= 0 {
				break
			}
			if done, err := s.carry.carry(ctx, from, goodsID, some); err != nil {
				return seckill.Down("the units can't be gathered", err)
			} else if done {
				missing -= some
			}
		}
	}
	return seckill.Down("the units are being sold while they are taken off sale", nil)
}

// unsold looks at the buckets of a sale, its own first, and counts what they have.
func (s *Stockroom) unsold(ctx context.Context, goodsID int64) (buckets []seckill.View, units int64, err error) {
	for _, id := range seckill.BucketsOf(goodsID) {
		v, err := s.shelf.View(ctx, id)
		if err != nil {
			return nil, 0, err
		}
		buckets, units = append(buckets, v), units+v.Available
	}
	return buckets, units, nil
}
