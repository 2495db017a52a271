package sqlstore

import (
	"context"
	"iter"
	"strings"
	"time"

	"gorm.io/gorm"

	"flashsale.dev/seckill/internal/apierror"
	"flashsale.dev/seckill/internal/event"
	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/message"
	"flashsale.dev/seckill/internal/order/rebuild"
	"flashsale.dev/seckill/internal/ordersn"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/salechange"
)

// NextRebuildToken issues the next fencing token of a goods and so invalidates all older ones.
func (s *Store) NextRebuildToken(ctx context.Context, goodsID int64) (rebuild.Token, error) {
	return inSaleTx(ctx, s, "take a rebuild token", goodsID,
		func(tx *gorm.DB, row saleRow) (rebuild.Token, error) {
			sale := row.sale()
			token := rebuild.Token{
				Number: row.RebuildToken + 1, Epoch: sale.Epoch, Retired: sale.Retired,
			}
			return token, tx.Model(&row).Update("rebuild_token", token.Number).Error
		})
}

// BeginEpoch begins the next epoch of a sale and returns the sale that it starts from. It writes
// the parked orders first; one that the database refuses becomes failed. A draft becomes exposed.
// It returns rebuild.ErrFenced for a token that is not the newest, and for rebuild.FirstToken with
// a sale that is no draft. It does so too while the recorded opening has not ended. A draft whose
// end has passed is a Conflict.
func (s *Store) BeginEpoch(
	ctx context.Context, goodsID, token int64, at order.Times,
) (seckill.Sale, error) {
	sale, err := s.beginEpoch(ctx, goodsID, token, at)
	if !isRefused(err) {
		return sale, err
	}
	if err := s.writeParkedSingly(ctx, goodsID, token, at); err != nil {
		return seckill.Sale{}, err
	}
	return s.beginEpoch(ctx, goodsID, token, at)
}

func (s *Store) beginEpoch(
	ctx context.Context, goodsID, token int64, at order.Times,
) (seckill.Sale, error) {
	return inSaleTx(ctx, s, "begin an epoch", goodsID,
		func(tx *gorm.DB, row saleRow) (sale seckill.Sale, err error) {
			at := at.Later()
			if err := checkToken(row, token, at.Now); err != nil {
				return sale, err
			}
			if row, err = writeParked(tx, row, at); err != nil {
				return sale, err
			}
			now := changeTime(row, at.Now)
			if err := expose(tx, &row, now); err != nil {
				return sale, err
			}
			// A retired sale that is rebuilt is live again for the background workers.
			row.Epoch, row.Updated, row.RetiredAt = row.Epoch+1, now.UnixMilli(), nil
			// Redis refuses the load of an older version than a change has brought.
			row.Version, row.OpenedOn = row.Version+1, ""
			q := tx.Select("status", "version", "epoch", "opened_on", "updated_at", "retired_at")
			return row.sale(), q.Updates(&row).Error
		})
}

// expose exposes a draft and records it in the audit log. A sale that is no draft stays as it is.
func expose(tx *gorm.DB, row *saleRow, now time.Time) error {
	if row.Status != seckill.Draft {
		return nil
	}
	was := *row
	row.Status = seckill.Exposed
	if err := addSaleEvent(tx, *row, event.SaleExposed, now); err != nil {
		return err
	}
	if err := openRoom(tx, *row); err != nil {
		return err
	}
	return audit(tx, salechange.ActExpose, was, *row, now)
}

// checkToken fences rebuilds: only the one with the newest token may continue, after it has ended
// the opening. The first exposure has no token because no rebuild precedes it.
func checkToken(row saleRow, token int64, now time.Time) error {
	switch {
	case token == rebuild.FirstToken && row.Status != seckill.Draft:
		return rebuild.ErrFenced
	case token != rebuild.FirstToken && token != row.RebuildToken:
		return rebuild.ErrFenced
	case row.OpenedOn != "" && !strings.HasPrefix(row.OpenedOn, endedPrefix):
		return rebuild.ErrFenced
	case row.Status == seckill.Draft && now.UnixMilli() >= row.EndAt:
		return apierror.New(apierror.Conflict, "the sale's end has passed")
	}
	return nil
}

// clockMargin is how far Redis' clock may go back after a load, as by a failover.
const clockMargin = 5 * time.Minute

// holdingPage is how many orders one statement of HoldingPages reads.
const holdingPage = 5000

// heldRow has the columns of an order that a holding needs.
type heldRow struct {
	order.Held `gorm:"embedded"`
	Status     order.Status
}

// HoldingPages iterates over the orders that an epoch starts from, by number: active ones, and
// final ones whose path may still be used. redisNow is Redis' time, which judges the paths. No
// page has more than holdingPage orders, and none is empty. After an error the iteration ends.
//
// No transaction lasts from page to page, and the goods row is not locked. That is safe (ADR 71):
// between the beginning of an epoch and its opening no order becomes active. An order that ends in
// that time has a stock move of this epoch. Redis applies it after the load, whether or not the
// order was loaded. The error is rebuild.ErrFenced if another epoch has begun, or if MySQL has lost
// this one in a failover.
func (s *Store) HoldingPages(
	ctx context.Context, goodsID, epoch int64, redisNow time.Time,
) iter.Seq2[[]order.Held, error] {
	usable := ordersn.FirstAt(redisNow.Add(-ordersn.PathTTL - clockMargin))
	return func(yield func([]order.Held, error) bool) {
		for after := ""; ; {
			rows, err := s.ordersOfEpoch(ctx, goodsID, epoch, after)
			page := heldOrders(rows, usable)
			goOn := err == nil && len(rows) > 0
			if len(page) > 0 || err != nil {
				goOn = yield(page, err) && goOn
			}
			if !goOn {
				return
			}
			after = rows[len(rows)-1].OrderSn
		}
	}
}

// ordersOfEpoch reads the next orders of a goods, in the order of their primary key. The server
// must have committed the given epoch and none after it.
func (s *Store) ordersOfEpoch(
	ctx context.Context, goodsID, epoch int64, after string,
) ([]heldRow, error) {
	return inTx(ctx, s, "read the orders of an epoch", func(tx *gorm.DB) ([]heldRow, error) {
		sale, err := findSale(tx, goodsID)
		if err == nil && sale.Epoch != epoch {
			err = rebuild.ErrFenced
		}
		if err != nil {
			return nil, err
		}
		var rows []heldRow
		// MySQL may choose the index orders_due, and then each page reads all orders of the sale.
		err = byIndex(tx.Model(&orderRow{}), "orders", "PRIMARY").
			Where("goods_id = ? AND order_sn > ?", goodsID, after).
			Order("order_sn").Limit(holdingPage).Find(&rows).Error
		return rows, err
	})
}

// heldOrders returns the active ones of these orders, and without units the final ones with numbers
// from usable on.
func heldOrders(rows []heldRow, usable string) []order.Held {
	page := make([]order.Held, 0, len(rows))
	for _, r := range rows {
		active := r.Status.Active()
		if !active {
			r.Quantity = 0
		}
		if active || r.OrderSn >= usable {
			page = append(page, r.Held)
		}
	}
	return page
}

// RecordBarrier records that a barrier passed through the queue; repeats are harmless. GORM's
// upsert would set goods_id to itself, which Vitess rejects because the column chooses the shard.
func (s *Store) RecordBarrier(
	ctx context.Context, goodsID int64, bar message.Barrier, now time.Time,
) error {
	row := barrierRow{
		GoodsID: goodsID, Epoch: bar.Epoch, Token: bar.Token, ReachedAt: now.UnixMilli(),
	}
	return wrapError("record a barrier", createOnce(s.read(ctx), &row))
}

// BarrierReached reports whether a barrier passed through the queue.
func (s *Store) BarrierReached(ctx context.Context, goodsID, epoch, token int64) (bool, error) {
	n, err := count[barrierRow]("find a barrier",
		s.read(ctx).Where("goods_id = ? AND epoch = ? AND token = ?", goodsID, epoch, token))
	return n > 0, err
}
