package sqlstore

import (
	"context"
	"slices"
	"strings"

	"gorm.io/gorm"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/stats"
)

// OrdersOf lists at most limit orders of a buyer, newest first, with numbers below before (empty:
// from the newest).
func (s *Store) OrdersOf(
	ctx context.Context, buyerID string, before string, limit int,
) ([]order.Order, error) {
	q := newest(s.read(ctx).Where("buyer_id = ?", buyerID), "order_sn", before, limit)
	return list("list a buyer's orders", q, orderRow.order)
}

// OrdersOfGoods lists a sale's orders in the same way; an empty status means all. It reads the
// replica where there is one.
func (s *Store) OrdersOfGoods(
	ctx context.Context, goodsID int64, status order.Status, before string, limit int,
) ([]order.Order, error) {
	return readReplica(ctx, s, func(q *gorm.DB) ([]order.Order, error) {
		q = q.Where("goods_id = ?", goodsID)
		if status == "" {
			q = byIndex(q, "orders", "PRIMARY")
		} else {
			q = q.Where("status = ?", status)
		}
		return list("list a sale's orders", newest(q, "order_sn", before, limit), orderRow.order)
	})
}

// StatusOf returns the states of those order numbers of a goods that have a row. A parked order is
// queued.
func (s *Store) StatusOf(
	ctx context.Context, goodsID int64, sns []string,
) (map[string]order.Status, error) {
	found, _, err := existingOrders(s.read(ctx), goodsID, sns)
	if err != nil || len(found) == len(sns) {
		return found, wrapError("read order states", err)
	}
	missing := filter(sns, func(sn string) bool { _, written := found[sn]; return !written })
	late, err := parkedAmong(s.read(ctx), goodsID, missing)
	for _, r := range late {
		found[r.OrderSn] = order.Queued
	}
	return found, wrapError("read order states", err)
}

// OrdersByNumber returns the orders of a goods, of at most 1000 numbers, that have a row or are
// parked, unsorted.
func (s *Store) OrdersByNumber(
	ctx context.Context, goodsID int64, sns []string,
) ([]order.Order, error) {
	if len(sns) == 0 {
		return nil, nil
	}
	all, err := s.writtenOrders(ctx, goodsID, sns)
	if err != nil || len(all) == len(sns) {
		return all, err
	}
	missing := filter(sns, func(sn string) bool {
		return !slices.ContainsFunc(all, func(o order.Order) bool { return o.OrderSn == sn })
	})
	late, err := parkedAmong(s.read(ctx), goodsID, missing)
	all = append(all, mapSlice(late, lateRow.order)...)
	return all, wrapError("read orders", err)
}

// writtenOrders returns the orders that have a row. It avoids GORM's reflection, because buyers
// poll their orders with it.
func (s *Store) writtenOrders(
	ctx context.Context, goodsID int64, sns []string,
) (all []order.Order, err error) {
	values := []any{goodsID}
	for _, sn := range sns {
		values = append(values, sn)
	}
	rows, err := s.db.ConnPool.QueryContext(ctx, `SELECT goods_id, order_sn, buyer_id, quantity,
			name, phone, epoch, amount, status, failure_reason, created_at, pay_by, paid_at,
			closed_at, checkout_url, shipped_at, carrier, tracking_number, COALESCE(address, '')
		FROM orders WHERE goods_id = ? AND order_sn IN (?`+strings.Repeat(",?", len(sns)-1)+")",
		values...)
	if err != nil {
		return nil, wrapError("read orders", translated(s.db, err))
	}
	defer rows.Close()
	for rows.Next() {
		var r orderRow
		err := rows.Scan(&r.GoodsID, &r.OrderSn, &r.BuyerID, &r.Quantity, &r.Name, &r.Phone,
			&r.Epoch, &r.Amount, &r.Status, &r.FailureReason, &r.Created, &r.PayBy, &r.PaidAt,
			&r.ClosedAt, &r.CheckoutURL, &r.ShippedAt, &r.Carrier, &r.TrackingNumber, &r.Address)
		if err != nil {
			return nil, wrapError("read orders", err)
		}
		all = append(all, r.order())
	}
	return all, wrapError("read orders", translated(s.db, rows.Err()))
}

// findOrder reads one order. It names the goods too, because the goods determines the shard.
func findOrder(q *gorm.DB, goodsID int64, orderSn string) (orderRow, error) {
	q = q.Where("goods_id = ? AND order_sn = ?", goodsID, orderSn)
	return take[orderRow](q, order.ErrNoSuchOrder)
}

// CountOrders counts a sale's orders by status. It needs only an index of orders, because the price
// of a sale with orders never changes. It reads the replica where there is one.
func (s *Store) CountOrders(
	ctx context.Context, goodsID int64,
) (map[order.Status]stats.Count, error) {
	type row struct {
		Status        order.Status
		Orders, Units int64
		Price         int64
	}
	rows, err := readReplica(ctx, s, func(q *gorm.DB) (rows []row, err error) {
		err = q.Raw(`SELECT o.status, COUNT(*) AS orders,
				COALESCE(SUM(o.quantity), 0) AS units, MAX(s.price) AS price
			FROM orders o JOIN sales s ON s.goods_id = o.goods_id
			WHERE o.goods_id = ? GROUP BY o.status`, goodsID).Scan(&rows).Error
		return rows, err
	})
	counts := make(map[order.Status]stats.Count, len(rows))
	for _, r := range rows {
		counts[r.Status] = stats.Count{
			Orders: r.Orders, Units: r.Units, Amount: stats.Amount(r.Units, r.Price),
		}
	}
	return counts, wrapError("count orders", err)
}

// PaidUnits sums the units of the paid orders of some goods, by an index alone. Goods without such
// orders are not in the result. It reads the replica where there is one.
func (s *Store) PaidUnits(ctx context.Context, goods []int64) (map[int64]int64, error) {
	type row struct{ GoodsID, Units int64 }
	rows, err := readReplica(ctx, s, func(q *gorm.DB) (rows []row, err error) {
		err = q.Raw(`SELECT goods_id, SUM(quantity) AS units FROM orders`+byOrdersDue+`
			WHERE goods_id IN ? AND status = ? GROUP BY goods_id`, goods, order.Paid).Scan(&rows).Error
		return rows, err
	})
	units := make(map[int64]int64, len(rows))
	for _, r := range rows {
		units[r.GoodsID] = r.Units
	}
	return units, wrapError("sum paid orders", err)
}

// OrdersEndingWith returns at most limit numbers of written orders that end with eight characters,
// in either case: of the sales of a merchant, or of all sales for "". It reads the numbers of all
// these orders from an index. An index of their ends would make each purchase dearer, for a search
// that is rare. MySQL ends a search of 5 s. It reads the replica where there is one.
func (s *Store) OrdersEndingWith(
	ctx context.Context, merchantID, end string, limit int,
) ([]string, error) {
	found, err := readReplica(ctx, s, func(q *gorm.DB) (sns []string, err error) {
		owner, args := "", []any{strings.ToUpper(end)}
		if merchantID != "" {
			owner, args = " AND s.merchant_id = ?", append(args, merchantID)
		}
		err = q.Raw(`SELECT /*+ MAX_EXECUTION_TIME(5000) */ o.order_sn
			FROM sales s JOIN orders o ON o.goods_id = s.goods_id
			WHERE UPPER(SUBSTR(o.order_sn, -8)) = ?`+owner+" LIMIT ?", append(args, limit)...).
			Scan(&sns).Error
		return sns, err
	})
	return found, wrapError("search orders by the end of their numbers", err)
}
