package sqlstore

import (
	"context"
	"time"

	"gorm.io/gorm"

	"flashsale.dev/seckill/internal/apierror"
	"flashsale.dev/seckill/internal/event"
	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/inventory"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/reservation"
	"flashsale.dev/seckill/internal/seckill/salechange"
)

// CreateSale stores a new sale and its audit entry. A goods id that exists is a Conflict. For a
// repeated idempotency key it stores nothing and returns the first request's sale.
func (s *Store) CreateSale(
	ctx context.Context, sale seckill.Sale, key salechange.IdempotencyKey,
) (seckill.Sale, error) {
	row := rowOfSale(sale)
	create := func(tx *gorm.DB) error {
		if err := tx.Create(&row).Error; err != nil {
			return orTaken(err)
		}
		if err := audit(tx, salechange.ActCreate, saleRow{}, row, sale.CreatedAt); err != nil {
			return err
		}
		return saveAnswer(tx, key, row, "", sale.CreatedAt)
	}
	known, err := s.runOnce(ctx, key, sale.CreatedAt,
		func() error { return s.inTx(ctx, "create a sale", create) })
	if known != nil {
		return known.Answer, nil
	}
	return sale, err
}

// Change changes a sale and writes its audit entry in one transaction. For an exposed sale that
// gets more units it also writes the stock move that adds them in Redis. A cut of an exposed sale
// changes nothing yet: it becomes a row of stock_cuts. A change of fields is Unavailable while an
// open cut has fields. A repeated idempotency key changes nothing and returns the first answer, or
// the cut that is still open.
func (s *Store) Change(
	ctx context.Context, goodsID int64, c salechange.Change, key salechange.IdempotencyKey,
	now time.Time,
) (inventory.BegunChange, error) {
	var b inventory.BegunChange
	write := func(tx *gorm.DB, sale saleRow) (err error) {
		// Refuse an invalid change before the write to the row of a retired sale.
		after, err := c.Apply(sale.sale())
		if err != nil {
			return err
		}
		if err := waitForCuts(tx, goodsID, c); err != nil {
			return err
		}
		if err := unretire(tx, &sale); err != nil {
			return err
		}
		// Redis may have promised the units to buyers already, so the cut starts there (EndCut).
		if sale.Status == seckill.Exposed && c.StockDelta < 0 {
			b.Sale = sale.sale()
			if err := checkExternalID(tx, sale, rowOfSale(after)); err != nil {
				return err
			}
			b.Cut, err = beginCut(tx, sale, c, key, now)
			return err
		}
		if sale, b.Moves, err = change(tx, sale, c, now); err != nil {
			return err
		}
		b.Sale = sale.sale()
		return saveAnswer(tx, key, sale, "", now)
	}
	known, err := s.runOnce(ctx, key, now,
		func() error { return s.inSaleTx(ctx, "change a sale", goodsID, write) })
	if known != nil {
		return s.repeatedChange(ctx, *known)
	}
	return b, err
}

// repeatedChange returns the result of the first request with a key.
func (s *Store) repeatedChange(
	ctx context.Context, row idempotencyRow,
) (inventory.BegunChange, error) {
	if row.CutID == "" {
		return inventory.BegunChange{Sale: row.Answer}, nil
	}
	cut, err := findCut(s.read(ctx), row.GoodsID, row.CutID)
	if err != nil {
		return inventory.BegunChange{}, wrapError("find a cut", err)
	}
	return inventory.BegunChange{Cut: new(cut.cut())}, nil
}

// change applies c to the locked row of a sale and records it. It returns the new row, and the
// stock move where an exposed sale gets more units.
func change(
	tx *gorm.DB, was saleRow, c salechange.Change, now time.Time,
) (saleRow, []order.StockMove, error) {
	after, err := c.Apply(was.sale())
	if err != nil || after == was.sale() { // then the audit log would have an entry without a field
		return was, nil, err
	}
	now = changeTime(was, now)
	row, err := changeRow(tx, was, after, now)
	if err != nil {
		return was, nil, err
	}
	if row.Status == seckill.Exposed && row.Stock == 0 && was.Stock > 0 {
		if err := addSaleEvent(tx, row, event.SaleSoldOut, now); err != nil {
			return was, nil, err
		}
	}
	var moves []order.StockMove
	// A draft has no units in Redis yet: its first epoch loads them all.
	if row.Status == seckill.Exposed && c.StockDelta > 0 {
		move, err := addUnits(tx, row, c.StockDelta, now)
		if err != nil {
			return was, nil, err
		}
		moves = append(moves, move)
	}
	return row, moves, audit(tx, salechange.ActChange, was, row, now)
}

// changeRow writes a changed sale to its locked row, by compare-and-swap on the version. The update
// has all columns, so that it needs no list of those that a merchant may change.
func changeRow(tx *gorm.DB, was saleRow, after seckill.Sale, now time.Time) (saleRow, error) {
	row := was.with(after)
	row.Version, row.Updated = was.Version+1, now.UnixMilli()
	res := tx.Model(&saleRow{}).Where("goods_id = ? AND version = ?", was.GoodsID, was.Version).
		Select("*").Omit("goods_id").Updates(&row) // a sharded database refuses to change its key
	res.Error = orTaken(res.Error)
	return row, updateOne(res)
}

// orTaken replaces the error of a unique id by a Conflict. Goods ids are random in part, so the id
// that is taken is the merchant's.
func orTaken(err error) error {
	if isDuplicate(err) {
		return apierror.New(apierror.Conflict, "another sale of yours has this externalId").
			With("field", "externalId")
	}
	return err
}

// checkExternalID refuses an id that another sale has, before a cut takes units from buyers. The
// unique index has the ids of all sales, so checkExternalID writes the id and takes it back.
func checkExternalID(tx *gorm.DB, was, after saleRow) error {
	if text(was.ExternalID) == text(after.ExternalID) {
		return nil
	}
	for _, id := range []*string{after.ExternalID, was.ExternalID} {
		q := tx.Model(&saleRow{}).Where("goods_id = ?", was.GoodsID)
		if err := orTaken(q.Update("external_id", id).Error); err != nil {
			return err
		}
	}
	return nil
}

// addUnits writes the move that adds units to the sale in Redis.
func addUnits(tx *gorm.DB, sale saleRow, units int64, now time.Time) (order.StockMove, error) {
	move := newMove(sale, reservation.OrderLine{Quantity: units}, order.MoveDelta, now)
	return move, insert(tx, []moveRow{rowOfMove(move)})
}

// DeleteDraft deletes a draft; the audit log keeps its fields. Any other sale is a Conflict. A
// repeated idempotency key deletes nothing.
func (s *Store) DeleteDraft(
	ctx context.Context, goodsID int64, key salechange.IdempotencyKey, now time.Time,
) error {
	remove := func(tx *gorm.DB, row saleRow) error {
		if row.Status != seckill.Draft {
			return apierror.New(apierror.Conflict, "only a draft can be deleted")
		}
		if err := tx.Where("goods_id = ?", goodsID).Delete(&saleRow{}).Error; err != nil {
			return err
		}
		if err := audit(tx, salechange.ActDelete, row, saleRow{}, now); err != nil {
			return err
		}
		return saveAnswer(tx, key, row, "", now)
	}
	_, err := s.runOnce(ctx, key, now,
		func() error { return s.inSaleTx(ctx, "delete a draft", goodsID, remove) })
	return err
}
