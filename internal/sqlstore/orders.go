package sqlstore

import (
	"context"
	"errors"
	"slices"

	"gorm.io/gorm"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/seckill"
)

// Order finds an order, or order.ErrNoSuchOrder.
func (s *Store) Order(ctx context.Context, goodsID int64, orderSn string) (order.Order, error) {
	row, err := findOrder(s.read(ctx), goodsID, orderSn)
	return row.order(), trouble("find an order", err)
}

// OrdersOf lists a buyer's orders, newest first: at most limit, beginning below the number before (empty for the newest).
func (s *Store) OrdersOf(ctx context.Context, buyerID int64, before string, limit int) ([]order.Order, error) {
	return orderList("list a buyer's orders", s.read(ctx).Where("buyer_id = ?", buyerID), before, limit)
}

// OrdersOfGoods lists the orders of a sale, of all of its buckets, in the same way, from the replica where there is one; an empty
// status means all.
func (s *Store) OrdersOfGoods(ctx context.Context, goodsID int64, status order.Status, before string, limit int) ([]order.Order, error) {
	ids := seckill.BucketsOf(goodsID)
	lists := make([]orderPages, len(ids))
	for i, id := range ids {
		lists[i] = orderPages{size: limit, before: before, read: func(before string, limit int) ([]order.Order, error) {
			return s.ordersOfBucket(ctx, id, status, before, limit)
		}}
		if len(ids) > 1 {
			lists[i].size = limit/len(ids) + 1
		}
	}
	return newest(lists, limit)
}

func (s *Store) ordersOfBucket(ctx context.Context, goodsID int64, status order.Status, before string, limit int) (list []order.Order, err error) {
	err = s.listing(ctx, func(q *gorm.DB) (err error) {
		q = q.Where("goods_id = ?", goodsID)
		if status != "" {
			q = q.Where("status = ?", status)
		}
		list, err = orderList("list a sale's orders", q, before, limit)
		return err
	})
	return list, err
}

// orderPages reads a list of orders, newest first, page by page as they are wanted: of many buckets' lists each has a small
// part of a page of all, and one sort over whole sales would be as long as they are.
type orderPages struct {
	size   int
	before string
	read   func(before string, limit int) ([]order.Order, error)
	page   []order.Order
	ended  bool
}

// head is the newest that has not been taken; nil where there is none.
func (p *orderPages) head() (*order.Order, error) {
	if len(p.page) == 0 && !p.ended {
		page, err := p.read(p.before, p.size)
		if err != nil {
			return nil, err
		}
		if p.page, p.ended = page, len(page) < p.size; len(page) > 0 {
			p.before = page[len(page)-1].OrderSn
		}
	}
	if len(p.page) == 0 {
		return nil, nil
	}
	return &p.page[0], nil
}

// newest merges lists into the first so many of all.
func newest(lists []orderPages, limit int) ([]order.Order, error) {
	all := make([]order.Order, 0, limit)
	for len(all) < limit {
		var first *orderPages
		for i := range lists {
			head, err := lists[i].head()
			if err != nil {
				return nil, err
			}
			if head != nil && (first == nil || head.OrderSn > first.page[0].OrderSn) {
				first = &lists[i]
			}
		}
		if first == nil {
			break
		}
		all, first.page = append(all, first.page[0]), first.page[1:]
	}
	return all, nil
}

// StatusOf tells the states of those order numbers of a goods that have a row.
func (s *Store) StatusOf(ctx context.Context, goodsID int64, sns []string) (map[string]order.Status, error) {
	found, err := statuses(s.read(ctx), goodsID, sns)
	return found, trouble("look up order numbers", err)
}

// OrdersByNumber reads those orders of a goods that have a row, in no order.
func (s *Store) OrdersByNumber(ctx context.Context, goodsID int64, sns []string) ([]order.Order, error) {
	var all []order.Order
	for part := range slices.Chunk(sns, chunkOf(s.db)) {
		var rows []orderRow
		if err := s.read(ctx).Where("goods_id = ? AND order_sn IN ?", goodsID, part).Find(&rows).Error; err != nil {
			return nil, trouble("read orders", err)
		}
		all = append(all, each(rows, orderRow.order)...)
	}
	return all, nil
}

func orderList(op string, q *gorm.DB, before string, limit int) ([]order.Order, error) {
	if before != "" {
		q = q.Where("order_sn < ?", before)
	}
	var rows []orderRow
	err := q.Order("order_sn DESC").Limit(limit).Find(&rows).Error
	return each(rows, orderRow.order), trouble(op, err)
}

func findOrder(q *gorm.DB, goodsID int64, orderSn string) (orderRow, error) {
	var row orderRow
	err := q.Where("goods_id = ? AND order_sn = ?", goodsID, orderSn).Take(&row).Error
	if errors.Is(err, gorm.ErrRecordNotFound) {
		err = order.ErrNoSuchOrder
	}
	return row, err
}

// CountOrders counts a sale's orders by status, in all of its buckets, out of an index alone: the price of a sale that has orders
// never changes. It asks the replica where there is one.
func (s *Store) CountOrders(ctx context.Context, goodsID int64) (map[order.Status]order.Count, error) {
	var rows []struct {
		Status        order.Status
		Orders, Units int64
		Price         int64
	}
	err := s.listing(ctx, func(q *gorm.DB) error {
		return q.Raw(`SELECT o.status, COUNT(*) AS orders, COALESCE(SUM(o.quantity), 0) AS units, MAX(s.price) AS price
			FROM orders o JOIN sales s ON s.goods_id = o.goods_id WHERE o.goods_id IN ? GROUP BY o.status`, seckill.BucketsOf(goodsID)).Scan(&rows).Error
	})
	counts := make(map[order.Status]order.Count, len(rows))
	for _, r := range rows {
		counts[r.Status] = order.Count{Orders: r.Orders, Units: r.Units, Amount: r.Units * r.Price}
	}
	return counts, trouble("count orders", err)
}
