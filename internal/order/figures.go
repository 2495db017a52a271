package order

import (
	"context"
	"time"

	"flashsale.dev/seckill/internal/seckill"
)

// Count is how many orders of a status there are, and what they hold.
type Count struct {
	Orders int64
	Units  int64
	Amount int64 // of money
}

// Counter counts a goods' orders by status.
type Counter interface {
	CountOrders(ctx context.Context, goodsID int64) (map[Status]Count, error)
}

// Figures are a sale's numbers at one moment; Redis' and MySQL's are not of the same instant.
type Figures struct {
	View       seckill.View
	Orders     map[Status]Count // as MySQL has them
	BacklogAge time.Duration    // of the oldest reservation that MySQL may not have; 0 where there is none
}

// Bookkeeper tells merchants their figures.
type Bookkeeper struct {
	owners  Owners
	front   Front
	counter Counter
}

// NewBookkeeper makes a bookkeeper.
func NewBookkeeper(owners Owners, front Front, counter Counter) *Bookkeeper {
	return &Bookkeeper{owners: owners, front: front, counter: counter}
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
	}
	if f.Orders, err = b.counter.CountOrders(ctx, goodsID); err != nil {
		return f, seckill.Down("the orders can't be counted", err)
	}
	if f.View.Pending > 0 {
		f.BacklogAge = max(0, f.View.Now.Sub(f.View.PendingSince))
	}
	return f, nil
}
