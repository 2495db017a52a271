package sqlstore

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"gorm.io/gorm"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/rebuild"
	"flashsale.dev/seckill/internal/ordersn"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/salechange"
)

// NextRebuildToken issues the next fencing token of a goods and so invalidates all older ones.
func (s *Store) NextRebuildToken(ctx context.Context, goodsID int64) (int64, error) {
	return inSaleTx(ctx, s, "take a rebuild token", goodsID,
		func(tx *gorm.DB, row saleRow) (int64, error) {
			token := row.RebuildToken + 1
			return token, tx.Model(&row).Update("rebuild_token", token).Error
		})
}

// BeginEpoch begins the next epoch of a sale and reads its state in the same transaction. It writes
// the parked orders first. A draft becomes exposed. It returns rebuild.ErrFenced for a token that is not the newest, and for
// rebuild.FirstToken with a sale that is no draft. A draft whose end has passed is a Conflict.
func (s *Store) BeginEpoch(
	ctx context.Context, goodsID, token int64, at rebuild.Times,
) (rebuild.Snapshot, error) {
	return inSaleTx(ctx, s, "begin an epoch", goodsID,
		func(tx *gorm.DB, row saleRow) (snap rebuild.Snapshot, err error) {
			if err := checkToken(row, token, at.Now); err != nil {
				return snap, err
			}
			if row, err = writeParked(tx, row, at); err != nil {
				return snap, err
			}
			if err := expose(tx, &row, at.Now); err != nil {
				return snap, err
			}
			// A retired sale that is rebuilt is live again for the background workers.
			row.Epoch, row.Updated, row.RetiredAt = row.Epoch+1, at.Now.UnixMilli(), nil
			// Redis refuses the load of an older version than a change has brought.
			row.Version, row.OpenedOn = row.Version+1, ""
			q := tx.Select("status", "version", "epoch", "opened_on", "updated_at", "retired_at")
			if err := q.Updates(&row).Error; err != nil {
				return snap, err
			}
			snap.Sale = row.sale()
			snap.Holdings, err = holdingsAt(tx, goodsID, at.Redis)
			return snap, err
		})
}

// expose exposes a draft and records it in the audit log. It does not change any other sale.
func expose(tx *gorm.DB, row *saleRow, now time.Time) error {
	if row.Status != seckill.Draft {
		return nil
	}
	was := *row
	row.Status = seckill.Exposed
	return audit(tx, salechange.ActExpose, was, *row, now)
}

// checkToken fences rebuilds: only the one with the newest token may continue, after it has ended the
// opening. The first exposure has no token because no rebuild precedes it.
func checkToken(row saleRow, token int64, now time.Time) error {
	switch {
	case token == rebuild.FirstToken && row.Status != seckill.Draft:
		return rebuild.ErrFenced
	case token != rebuild.FirstToken && token != row.RebuildToken:
		return rebuild.ErrFenced
	case row.OpenedOn != "" && !strings.HasPrefix(row.OpenedOn, ended):
		return rebuild.ErrFenced
	case row.Status == seckill.Draft && now.UnixMilli() >= row.EndAt:
		return seckill.NewError(seckill.Conflict, "the sale's end has passed")
	}
	return nil
}

// clockMargin is how far Redis' clock may go back after a load, as by a failover.
const clockMargin = 5 * time.Minute

// holdingsAt groups the active orders of a goods by buyer, ascending by buyer and order number. It
// adds final orders whose path may still be used, without units, so that the path takes nothing.
// now is Redis' time, which judges the paths.
func holdingsAt(tx *gorm.DB, goodsID int64, now time.Time) ([]rebuild.Holding, error) {
	var rows, ended []orderRow
	active := []order.Status{order.Created, order.Paid}
	usable := ordersn.FirstAt(now.Add(-ordersn.PathTTL - clockMargin))
	err := tx.Select("buyer_id", "order_sn", "quantity").Order("order_sn").
		Where("goods_id = ? AND status IN ?", goodsID, active).Find(&rows).Error
	if err != nil {
		return nil, err
	}
	// Two statements, because one with OR has an index for one half only.
	err = tx.Select("buyer_id", "order_sn").Order("order_sn").
		Where("goods_id = ? AND order_sn >= ? AND status NOT IN ?", goodsID, usable, active).
		Find(&ended).Error
	rows = append(rows, ended...)
	place := make(map[int64]int, len(rows))
	var list []rebuild.Holding
	for _, r := range rows {
		i, known := place[r.BuyerID]
		if !known {
			i = len(list)
			place[r.BuyerID], list = i, append(list, rebuild.Holding{BuyerID: r.BuyerID})
		}
		list[i].Held += r.Quantity
		list[i].Orders = append(list[i].Orders,
			rebuild.HeldOrder{OrderSn: r.OrderSn, Quantity: r.Quantity})
	}
	// Equal states make equal snapshots, independent of the order of the rows.
	slices.SortFunc(list,
		func(a, b rebuild.Holding) int { return cmp.Compare(a.BuyerID, b.BuyerID) })
	return list, err
}

// RecordBarrier records that a barrier passed through the queue; repeats are harmless. GORM's
// upsert would set goods_id to itself, which Vitess rejects because the column chooses the shard.
func (s *Store) RecordBarrier(
	ctx context.Context, goodsID int64, bar order.Barrier, now time.Time,
) error {
	row := barrierRow{
		GoodsID: goodsID, Epoch: bar.Epoch, Token: bar.Token, ReachedAt: now.UnixMilli(),
	}
	return wrapError("record a barrier", createOnce(s.read(ctx), &row))
}

// BarrierReached reports whether a barrier passed through the queue.
func (s *Store) BarrierReached(ctx context.Context, goodsID, epoch, token int64) (bool, error) {
	var n int64
	err := s.read(ctx).Model(&barrierRow{}).
		Where("goods_id = ? AND epoch = ? AND token = ?", goodsID, epoch, token).Count(&n).Error
	return n > 0, wrapError("find a barrier", err)
}
