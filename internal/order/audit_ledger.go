package order

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"

	"flashsale.dev/seckill/internal/seckill"
)

const (
	// bucketsAtOnce is how many buckets of a sale are asked side by side.
	bucketsAtOnce = 16
	// airLooks is how often a ledger of many buckets is read until no unit is seen twice or not at all, and airPause the time
	// between: a transfer takes a few milliseconds, and buckets are not read at one instant.
	airLooks = 20
	airPause = 50 * time.Millisecond
)

// Ledger accounts for every unit of a sale, in all of its buckets. It is Unavailable while any of them is being rebuilt; a
// draft's, and that of a sale that is over and gone from Redis, come from MySQL alone.
//
// Units that are on their way between two buckets are in neither. They are waited for; where they stay away (Redis or MySQL
// does, too) they count as available, which is what they will be.
func (a *Auditor) Ledger(ctx context.Context, sale seckill.Sale) (seckill.Ledger, error) {
	if seckill.Buckets(sale.GoodsID) == 1 || sale.Status == seckill.Draft {
		return a.account(ctx, sale)
	}
	for look := 1; ; look++ {
		l, total, err := a.accountAll(ctx, sale.GoodsID)
		if err != nil || l.Total == total {
			return l, err
		}
		if look == airLooks || ctx.Err() != nil {
			return withAir(l, total), nil
		}
		sleep(ctx, airPause)
	}
}

// accountAll adds the ledgers of a sale's buckets up, and gives the total that MySQL has of it.
func (a *Auditor) accountAll(ctx context.Context, goodsID int64) (sum seckill.Ledger, total int64, err error) {
	buckets, err := a.store.Buckets(ctx, goodsID)
	if err != nil {
		return sum, 0, seckill.Down("the ledger can't be read", err)
	}
	ledgers := make([]seckill.Ledger, len(buckets))
	var g errgroup.Group
	g.SetLimit(bucketsAtOnce)
	for i, b := range buckets {
		total += b.Total
		g.Go(func() (err error) {
			ledgers[i], err = a.account(ctx, b)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return sum, 0, err
	}
	sum = ledgers[0]
	for _, l := range ledgers[1:] {
		sum = sum.Plus(l)
	}
	return sum, total, nil
}

// withAir counts what is missing as available. What is there twice is told as it is: the next look sees it once.
func withAir(l seckill.Ledger, total int64) seckill.Ledger {
	if air := total - l.Total; air > 0 {
		l.Total, l.Available = total, l.Available+air
	}
	return l
}
