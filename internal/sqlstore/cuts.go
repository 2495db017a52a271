package sqlstore

import (
	"context"
	"errors"
	"slices"
	"time"

	"gorm.io/gorm"

	"flashsale.dev/seckill/internal/apierror"
	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/inventory"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/salechange"
)

// cutRow is written before the call to Redis. After a crash the row has everything to finish the
// cut.
type cutRow struct {
	GoodsID        int64  `gorm:"primaryKey;autoIncrement:false"`
	ID             string `gorm:"primaryKey"`
	Epoch          int64
	Quantity       int64
	Wanted         salechange.Change `gorm:"serializer:json"`
	ActorID        string
	ActorRole      seckill.Role
	APIKeyID       string `gorm:"column:api_key_id"`
	APIKeyName     string `gorm:"column:api_key_name"`
	IdempotencyKey string
	State          inventory.CutState
	MadeAt         int64
}

func (cutRow) TableName() string { return "stock_cuts" }

func (r cutRow) cut() inventory.StockCut {
	return inventory.StockCut{
		ID: r.ID, GoodsID: r.GoodsID, Epoch: r.Epoch, Quantity: r.Quantity, Wanted: r.Wanted,
		By: seckill.Actor{
			ID: r.ActorID, Role: r.ActorRole,
			APIKey: seckill.APIKey{ID: r.APIKeyID, Name: r.APIKeyName},
		},
		State: r.State,
	}
}

// beginCut writes the row of a cut under the goods row's lock. Its epoch is the one that Redis must
// have.
func beginCut(
	tx *gorm.DB, sale saleRow, c salechange.Change, key salechange.IdempotencyKey, now time.Time,
) (*inventory.StockCut, error) {
	by := seckill.ActorOf(tx.Statement.Context)
	row := cutRow{
		GoodsID: sale.GoodsID, ID: newID(), Epoch: sale.Epoch, Quantity: -c.StockDelta,
		Wanted: c, ActorID: by.ID, ActorRole: by.Role, APIKeyID: by.APIKey.ID,
		APIKeyName: by.APIKey.Name, IdempotencyKey: key.Key,
		State: inventory.CutOpen, MadeAt: now.UnixMilli(),
	}
	if err := tx.Create(&row).Error; err != nil {
		return nil, err
	}
	return new(row.cut()), saveAnswer(tx, key, sale, row.ID, now)
}

// waitForCuts refuses a change of fields while an open cut has fields too. These would replace the
// fields of the later change, which was answered. The caller holds the goods row's lock.
func waitForCuts(tx *gorm.DB, goodsID int64, c salechange.Change) error {
	if !c.HasFields() {
		return nil
	}
	var open []cutRow
	err := tx.Where("goods_id = ? AND state = ?", goodsID, inventory.CutOpen).Find(&open).Error
	if slices.ContainsFunc(open, func(r cutRow) bool { return r.Wanted.HasFields() }) {
		err = apierror.NewUnavailable("an earlier change of the sale is not finished yet", nil)
	}
	return err
}

// EndCut finishes a cut with Redis' result in the cut's epoch. Applied: the change and the end of
// the cut are one transaction. Refused: the cut is undone. After a newer epoch has begun the result
// is void: the cut gets that epoch and remains open. It does not change a cut that has ended.
func (s *Store) EndCut(
	ctx context.Context, c inventory.StockCut, result order.MoveResult, now time.Time,
) (inventory.StockCut, seckill.Sale, error) {
	var ended cutRow
	var sale saleRow
	ctx = seckill.WithActor(ctx, c.By)
	err := s.inSaleTx(ctx, "end a cut", c.GoodsID, func(tx *gorm.DB, row saleRow) (err error) {
		sale = row
		if ended, err = findCut(tx, c.GoodsID, c.ID); err != nil {
			return err
		}
		switch {
		case ended.State != inventory.CutOpen:
			return nil
		// A rebuild loaded the units into Redis again, so the old epoch's answer is void.
		case c.Epoch != sale.Epoch || result == order.MoveCovered:
			ended.Epoch = sale.Epoch
			return saveCut(tx, ended)
		case result == order.CutTooLarge:
			return undoCut(tx, &ended)
		default:
			sale, err = endCut(tx, &ended, sale, c, now)
			return err
		}
	})
	if err != nil {
		return c, sale.sale(), err
	}
	return ended.cut(), sale.sale(), nil
}

// endCut applies the change of a cut whose units Redis released. Where the sale no longer allows
// it, for example because it was closed, a move returns the units to Redis.
func endCut(
	tx *gorm.DB, cut *cutRow, was saleRow, c inventory.StockCut, now time.Time,
) (saleRow, error) {
	after, _, err := change(tx, was, c.Wanted, now)
	if apierror.ReasonOf(err) != "" {
		// Redis has released the units, and MySQL still has them.
		if _, err := addUnits(tx, was, cut.Quantity, now); err != nil {
			return was, err
		}
		return was, undoCut(tx, cut)
	}
	if err != nil {
		return was, err
	}
	cut.State = inventory.CutDone
	if err := saveCut(tx, *cut); err != nil || cut.IdempotencyKey == "" {
		return after, err
	}
	// From here on a repeated request gets the changed sale instead of the open cut.
	return after, keyOf(tx, cut).Select("answer", "cut_id").
		Updates(&idempotencyRow{Answer: after.sale()}).Error
}

// undoCut ends a refused cut and deletes its idempotency key: the refusal changed nothing, so the
// client may repeat the request.
func undoCut(tx *gorm.DB, cut *cutRow) error {
	cut.State = inventory.CutUndone
	if err := saveCut(tx, *cut); err != nil || cut.IdempotencyKey == "" {
		return err
	}
	return keyOf(tx, cut).Delete(&idempotencyRow{}).Error
}

// keyOf finds the idempotency key of the request that began a cut.
func keyOf(tx *gorm.DB, cut *cutRow) *gorm.DB {
	return tx.Where("actor_id = ? AND idempotency_key = ? AND cut_id = ?",
		cut.ActorID, cut.IdempotencyKey, cut.ID)
}

// saveCut updates only what changes in a cut's life. The caller holds the goods row's lock.
func saveCut(tx *gorm.DB, cut cutRow) error {
	return tx.Exec(`UPDATE stock_cuts SET state = ?, epoch = ? WHERE goods_id = ? AND id = ?`,
		cut.State, cut.Epoch, cut.GoodsID, cut.ID).Error
}

// errNoCut means that no cut has this id, which only a program error causes.
var errNoCut = errors.New("no such cut")

// findCut reads one cut; errNoCut if there is none.
func findCut(q *gorm.DB, goodsID int64, id string) (cutRow, error) {
	return take[cutRow](q.Where("goods_id = ? AND id = ?", goodsID, id), errNoCut)
}

// OpenCuts lists at most limit open cuts, oldest first, with ids after the given one (empty: from
// the oldest). They were begun at a moment or earlier, or before the server's clock was set back.
func (s *Store) OpenCuts(
	ctx context.Context, before time.Time, after string, limit int,
) ([]inventory.StockCut, error) {
	q := s.read(ctx).Where("state = ? AND id > ?", inventory.CutOpen, after)
	return list("list open cuts", notLater(q, "made_at", before, 0).Order("id").Limit(limit),
		cutRow.cut)
}
