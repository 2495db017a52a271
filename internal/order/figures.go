package order

import (
	"context"
	"slices"
	"time"

	"flashsale.dev/seckill/internal/group"
	"flashsale.dev/seckill/internal/seckill"
)

// Count is how many orders of a status there are, and what they hold.
type Count struct {
	Orders int64
	Units  int64
	Amount int64 // of money
}

// Counter counts a sale's orders by status.
type Counter interface {
	CountOrders(ctx context.Context, goodsID int64) (map[Status]Count, error)
}

// Figures are a sale's numbers at one moment; Redis' and MySQL's are not of the same instant.
type Figures struct {
	View       seckill.View
	Orders     map[Status]Count // as MySQL has them
	BacklogAge time.Duration    // of the oldest reservation that MySQL may not have; 0 where there is none
	Pace       Pace             // as the nodes counted it, up to a second ago
}

// Bookkeeper tells merchants their figures. Those who ask for one sale's at the same time share one count of its orders: it
// grows with them, and a page of figures asks all the time.
type Bookkeeper struct {
	owners  Owners
	front   Front
	counts  *group.Line[int64, struct{}, map[Status]Count]
	tallies TallyStore
}

// countDeadline bounds one count, which many may wait for.
const countDeadline = 4 * time.Second

// NewBookkeeper makes a bookkeeper.
func NewBookkeeper(owners Owners, front Front, counter Counter, tallies TallyStore) *Bookkeeper {
	count := func(ctx context.Context, goodsID int64, askers []struct{}) ([]map[Status]Count, error) {
		ctx, cancel := context.WithTimeout(ctx, countDeadline)
		defer cancel()
		counts, err := counter.CountOrders(ctx, goodsID)
		return slices.Repeat([]map[Status]Count{counts}, len(askers)), err
	}
	return &Bookkeeper{owners: owners, front: front, counts: group.New(seckill.MaxGroup, count), tallies: tallies}
}

// Figures reads the numbers of a sale that the actor may manage.
func (b *Bookkeeper) Figures(ctx context.Context, by seckill.Actor, goodsID int64) (Figures, error) {
	sale, err := b.owners.Get(ctx, by, goodsID)
	if err != nil {
		return Figures{}, err
	}
	f := Figures{View: seckill.View{Sale: sale, Available: sale.Stock, Now: time.Now().UTC()}}
	if sale.Status != seckill.Draft { // a draft is not in Redis
		if f.View, err = b.front.Sale(ctx, goodsID); err != nil {
			return f, err
		}
		if f.Pace, err = b.tallies.Pace(ctx, goodsID); err != nil {
			return f, seckill.Down("the figures can't be read", err)
		}
	}
	if f.Orders, err = b.counts.Do(ctx, goodsID, struct{}{}); err != nil {
		return f, seckill.Down("the orders can't be counted", err)
	}
	if f.View.Pending > 0 {
		f.BacklogAge = max(0, f.View.Now.Sub(f.View.PendingSince))
	}
	return f, nil
}
