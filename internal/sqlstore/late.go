package sqlstore

import (
	"context"
	"slices"
	"time"

	"gorm.io/gorm"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/orderwriter"
	"flashsale.dev/seckill/internal/seckill/reservation"
)

// lateRow is a parked order: a late one for which no open gate of the present epoch took units.
type lateRow struct {
	reservation.OrderLine `gorm:"embedded"`
	GoodsID               int64
	Amount                int64
	ParkedAt              int64
}

func (lateRow) TableName() string { return "late_orders" }

// order converts the row. The buyer reads a parked order as queued.
func (r lateRow) order() order.Order {
	return order.Order{
		OrderLine: r.OrderLine, GoodsID: r.GoodsID, Amount: r.Amount, Status: order.Queued,
		CreatedAt: timeOf(&r.ParkedAt),
	}
}

func (r lateRow) line() reservation.OrderLine { return r.OrderLine }

// LateGoods lists at most limit goods with parked orders, above a goods id, in ascending order.
func (s *Store) LateGoods(ctx context.Context, above int64, limit int) (ids []int64, err error) {
	err = s.read(ctx).Model(&lateRow{}).Where("goods_id > ?", above).Distinct("goods_id").
		Order("goods_id").Limit(limit).Pluck("goods_id", &ids).Error
	return ids, wrapError("list goods with late orders", err)
}

// LateOrders lists at most limit parked orders of a goods, with numbers after the given one (empty:
// from the first), in ascending order.
func (s *Store) LateOrders(
	ctx context.Context, goodsID int64, after string, limit int,
) ([]reservation.OrderLine, error) {
	return lateOrders(s.read(ctx), goodsID, after, limit)
}

func lateOrders(
	q *gorm.DB, goodsID int64, after string, limit int,
) ([]reservation.OrderLine, error) {
	q = q.Where("goods_id = ? AND order_sn > ?", goodsID, after).Order("order_sn").Limit(limit)
	return list("list late orders", q, lateRow.line)
}

// CountLateOrders counts the parked orders of all sales.
func (s *Store) CountLateOrders(ctx context.Context) (int64, error) {
	return count[lateRow]("count late orders", s.read(ctx))
}

// parkedAmong returns those of the numbers that are parked.
func parkedAmong(q *gorm.DB, goodsID int64, sns []string) ([]lateRow, error) {
	return findIn[lateRow](q, goodsID, "order_sn", sns)
}

// park parks late orders. One that is parked already stays as it is. The caller has locked the
// goods row.
func park(tx *gorm.DB, sale saleRow, lines []reservation.OrderLine, now time.Time) error {
	known, err := parkedAmong(tx, sale.GoodsID, numbersOf(lines))
	if err != nil {
		return err
	}
	parked := make(map[string]bool, len(known))
	for _, r := range known {
		parked[r.OrderSn] = true
	}
	var rows []lateRow
	for _, l := range lines {
		if err := validate(l); err != nil {
			return err
		}
		if !parked[l.OrderSn] {
			rows = append(rows, lateRow{
				OrderLine: l, GoodsID: sale.GoodsID, Amount: sale.Price * l.Quantity,
				ParkedAt: now.UnixMilli(),
			})
		}
	}
	if err := unretire(tx, &sale); err != nil {
		return err
	}
	return insert(tx, rows)
}

// unpark removes parked orders that have a row in orders now.
func unpark(tx *gorm.DB, goodsID int64, sns []string) error {
	for part := range slices.Chunk(sns, chunkOf(tx)) {
		err := tx.Where("goods_id = ? AND order_sn IN ?", goodsID, part).Delete(&lateRow{}).Error
		if err != nil {
			return err
		}
	}
	return nil
}

// writeParked writes the parked orders of a goods before an epoch begins: the epoch's snapshot then
// has them, and no reservation can take their units. Stock and limits decide in the order of their
// numbers. The row is read again after each page, because writing changes it.
func writeParked(tx *gorm.DB, sale saleRow, at order.Times) (saleRow, error) {
	for {
		lines, err := lateOrders(tx, sale.GoodsID, "", chunkOf(tx))
		if err != nil || len(lines) == 0 {
			return sale, err
		}
		if _, err := writeBatch(tx, sale, batchOfParked(sale, lines, at)); err != nil {
			return sale, err
		}
		if sale, err = lockSale(tx, sale.GoodsID); err != nil {
			return sale, err
		}
	}
}

// batchOfParked is the batch of parked orders whose units the sale's next epoch will hold.
func batchOfParked(
	sale saleRow, lines []reservation.OrderLine, at order.Times,
) orderwriter.Batch {
	b := orderwriter.Batch{
		GoodsID: sale.GoodsID, Lines: lines, Adopted: make(map[string]int64, len(lines)),
		Epoch: sale.Epoch, Times: at,
	}
	for _, l := range lines {
		b.Adopted[l.OrderSn] = l.Quantity
	}
	return b
}

// writeParkedSingly writes the parked orders of a goods one by one, because the database refuses
// one of them: it must not keep its sale shut.
func (s *Store) writeParkedSingly(
	ctx context.Context, goodsID, token int64, at order.Times,
) error {
	for after := ""; ; {
		lines, err := s.LateOrders(ctx, goodsID, after, sqliteChunk)
		if err != nil || len(lines) == 0 {
			return err
		}
		for _, l := range lines {
			if err := s.writeParkedOrder(ctx, goodsID, token, l, at); err != nil {
				return err
			}
			after = l.OrderSn
		}
	}
}

// writeParkedOrder writes one parked order. If the database refuses it, the order becomes failed.
// If that is refused too, only its dead letter is kept.
func (s *Store) writeParkedOrder(
	ctx context.Context, goodsID, token int64, l reservation.OrderLine, at order.Times,
) error {
	err := s.inSaleTx(ctx, "write a parked order", goodsID, func(tx *gorm.DB, sale saleRow) error {
		at := at.Later()
		if err := checkToken(sale, token, at.Now); err != nil {
			return err
		}
		_, err := writeBatch(tx, sale, batchOfParked(sale, []reservation.OrderLine{l}, at))
		return err
	})
	if !isRefused(err) {
		return err
	}
	now := at.Later().Now
	d := withDefaults(order.DeadLetter{
		GoodsID: goodsID, Reason: order.FailedUnwritten, Origin: originParked,
	}, l, now)
	err = s.WriteMissing(ctx, token, l, d, now)
	if !isRefused(err) {
		return err
	}
	d.ID = order.DeadLetterID(l.OrderSn)
	return s.AddDeadLetter(ctx, d)
}

// originParked is the origin of a dead letter whose order was parked.
const originParked = "parked"

func numbersOf(lines []reservation.OrderLine) []string {
	return mapSlice(lines, func(l reservation.OrderLine) string { return l.OrderSn })
}
