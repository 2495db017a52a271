package stats

import (
	"context"
	"math"
	"slices"
	"time"

	"flashsale.dev/seckill/internal/apierror"
	"flashsale.dev/seckill/internal/batcher"
	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/inventory"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/reservation"
	"flashsale.dev/seckill/internal/ttlcache"
)

// Count is the number of orders of one status, with their units and amount.
type Count struct {
	Orders int64
	Units  int64
	Amount int64 // in the currency's smallest unit
}

// Statistics are the figures of a sale. Redis and MySQL are read one after the other.
type Statistics struct {
	View       seckill.View
	Orders     map[order.Status]Count // from MySQL
	BacklogAge time.Duration          // age of the oldest pending reservation; 0 if there is none
	Rates      Rates                  // counted by all nodes, up to a second old
}

// Service reads statistics for merchants. Concurrent callers of one sale share one count of its
// orders, because its cost grows with the orders and a dashboard polls it. It is safe for
// concurrent use.
type Service struct {
	sales    *inventory.SaleService
	reader   order.SaleReader
	counts   *batcher.Batcher[int64, struct{}, map[order.Status]Count]
	recent   *ttlcache.Cache[int64, map[order.Status]Count]
	counters CounterStore

	countOrders func(ctx context.Context, goodsID int64) (map[order.Status]Count, error)
	paid        func(ctx context.Context, goods []int64) (map[int64]int64, error)
}

// countDeadline bounds one count that a batch of callers shares.
const countDeadline = 4 * time.Second

// RecentOptions are those of a figure that MySQL sums over all orders of a sale, for a console that
// shows it each second. Such sums take a tenth of the time of one connection at most, however many
// orders there are. A figure over 200,000 orders is then some tenths of a second old.
func RecentOptions() ttlcache.Options {
	return ttlcache.Options{
		TTL: 100 * time.Millisecond, Rest: 10, MaxAge: time.Minute,
		LoadTimeout: 10 * time.Second, MaxEntries: 1000, Now: time.Now,
	}
}

// NewService returns a statistics service. countOrders counts a sale's orders in MySQL by status;
// paidUnits sums the units of the paid orders of some goods, without those that have none.
func NewService(
	sales *inventory.SaleService, reader order.SaleReader, counters CounterStore,
	countOrders func(ctx context.Context, goodsID int64) (map[order.Status]Count, error),
	paidUnits func(ctx context.Context, goods []int64) (map[int64]int64, error),
) *Service {
	count := func(
		ctx context.Context, goodsID int64, callers []struct{},
	) ([]map[order.Status]Count, error) {
		ctx, cancel := context.WithTimeout(ctx, countDeadline)
		defer cancel()
		counts, err := countOrders(ctx, goodsID)
		return slices.Repeat([]map[order.Status]Count{counts}, len(callers)), err
	}
	counts := batcher.New(reservation.MaxBatch, count)
	return &Service{
		sales: sales, reader: reader, counts: counts, counters: counters, paid: paidUnits,
		countOrders: countOrders,
		recent:      ttlcache.New[int64, map[order.Status]Count](RecentOptions()),
	}
}

// Revenue returns the amount of the paid orders of each sale, in its currency's smallest unit. It
// may lag behind by the delay of a replica.
func (s *Service) Revenue(ctx context.Context, sales []seckill.Sale) (map[int64]int64, error) {
	units, err := s.paid(ctx, seckill.GoodsIDs(sales))
	if err != nil {
		return nil, apierror.NewUnavailable("the orders can't be counted", err)
	}
	revenue := make(map[int64]int64, len(sales))
	for _, sale := range sales { // the price of a sale with orders never changes
		revenue[sale.GoodsID] = Amount(units[sale.GoodsID], sale.Price)
	}
	return revenue, nil
}

// Amount is the price of some units. Bounds of stock and price permit more than an int64 has, which
// is then the answer.
func Amount(units, price int64) int64 {
	if price > 0 && units > math.MaxInt64/price {
		return math.MaxInt64
	}
	return units * price
}

// Statistics reads the figures of a sale that the actor manages.
func (s *Service) Statistics(
	ctx context.Context, by seckill.Actor, goodsID int64,
) (Statistics, error) {
	return s.statistics(ctx, by, goodsID, s.count)
}

// Recent is Statistics for a console. The counts of orders may be older than the rest, if there are
// very many orders.
func (s *Service) Recent(
	ctx context.Context, by seckill.Actor, goodsID int64,
) (Statistics, error) {
	return s.statistics(ctx, by, goodsID,
		func(ctx context.Context, goodsID int64) (map[order.Status]Count, error) {
			read := func(ctx context.Context) (map[order.Status]Count, error) {
				return s.countOrders(ctx, goodsID)
			}
			return s.recent.Get(ctx, goodsID, read)
		})
}

func (s *Service) count(ctx context.Context, goodsID int64) (map[order.Status]Count, error) {
	return s.counts.Do(ctx, goodsID, struct{}{})
}

func (s *Service) statistics(
	ctx context.Context, by seckill.Actor, goodsID int64,
	count func(ctx context.Context, goodsID int64) (map[order.Status]Count, error),
) (Statistics, error) {
	sale, err := s.sales.Get(ctx, by, goodsID)
	if err != nil {
		return Statistics{}, err
	}
	f := Statistics{View: seckill.View{Sale: sale, Available: sale.Stock, Now: s.sales.Now(ctx)}}
	if sale.Status != seckill.Draft { // a draft is not in Redis
		if f.View, err = s.reader.Sale(ctx, goodsID); err != nil {
			return f, err
		}
		if f.Rates, err = s.counters.Rates(ctx, goodsID); err != nil {
			return f, apierror.NewUnavailable("the statistics can't be read", err)
		}
	}
	if f.Orders, err = count(ctx, goodsID); err != nil {
		return f, apierror.NewUnavailable("the orders can't be counted", err)
	}
	f.BacklogAge = f.View.PendingAge()
	return f, nil
}
