package stats

import (
	"context"
	"slices"
	"time"

	"flashsale.dev/seckill/internal/batcher"
	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/reservation"
)

// Count is how many orders of a status there are, and what they hold.
type Count struct {
	Orders int64
	Units  int64
	Amount int64 // of money
}

// OrderCounter counts a sale's orders by status.
type OrderCounter interface {
	CountOrders(ctx context.Context, goodsID int64) (map[order.Status]Count, error)
}

// Statistics are a sale's numbers at one moment; Redis' and MySQL's are not of the same instant.
type Statistics struct {
	View       seckill.View
	Orders     map[order.Status]Count // as MySQL has them
	BacklogAge time.Duration          // of the oldest reservation that MySQL may not have; 0 where there is none
	Rates      Rates                  // as the nodes counted it, up to a second ago
}

// Service tells merchants their figures. Those who ask for one sale's at the same time share one count of its orders: it
// grows with them, and a page of figures asks all the time.
type Service struct {
	sales    order.SaleGetter
	reader   order.SaleReader
	counts   *batcher.Batcher[int64, struct{}, map[order.Status]Count]
	counters CounterStore
}

// countDeadline bounds one count, which many may wait for.
const countDeadline = 4 * time.Second

// NewService makes a bookkeeper.
func NewService(owners order.SaleGetter, front order.SaleReader, counter OrderCounter, tallies CounterStore) *Service {
	count := func(ctx context.Context, goodsID int64, askers []struct{}) ([]map[order.Status]Count, error) {
		ctx, cancel := context.WithTimeout(ctx, countDeadline)
		defer cancel()
		counts, err := counter.CountOrders(ctx, goodsID)
		return slices.Repeat([]map[order.Status]Count{counts}, len(askers)), err
	}
	return &Service{sales: owners, reader: front, counts: batcher.New(reservation.MaxBatch, count), counters: tallies}
}

// Statistics reads the numbers of a sale that the actor may manage.
func (b *Service) Statistics(ctx context.Context, by seckill.Actor, goodsID int64) (Statistics, error) {
	sale, err := b.sales.Get(ctx, by, goodsID)
	if err != nil {
		return Statistics{}, err
	}
	f := Statistics{View: seckill.View{Sale: sale, Available: sale.Stock, Now: time.Now().UTC()}}
	if sale.Status != seckill.Draft { // a draft is not in Redis
		if f.View, err = b.reader.Sale(ctx, goodsID); err != nil {
			return f, err
		}
		if f.Rates, err = b.counters.Rates(ctx, goodsID); err != nil {
			return f, seckill.NewUnavailable("the figures can't be read", err)
		}
	}
	if f.Orders, err = b.counts.Do(ctx, goodsID, struct{}{}); err != nil {
		return f, seckill.NewUnavailable("the orders can't be counted", err)
	}
	if f.View.Pending > 0 {
		f.BacklogAge = max(0, f.View.Now.Sub(f.View.PendingSince))
	}
	return f, nil
}
