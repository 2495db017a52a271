package sqlstore

import (
	"context"
	"time"

	"gorm.io/gorm"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/seckill"
)

// BeginTransfer writes down that units are to go from one bucket of a sale to another, before Redis is asked for them. It locks
// nothing: whether the epoch is the bucket's is judged when the transfer ends.
func (s *Store) BeginTransfer(ctx context.Context, c order.Cut) error {
	row := cutRow{
		GoodsID: c.GoodsID, ID: c.ID, Epoch: c.Epoch, Quantity: c.Quantity, To: c.To, Wanted: "{}",
		State: order.CutOpen, MadeAt: c.BegunAt.UnixMilli(),
	}
	return trouble("begin a transfer", s.read(ctx).Create(&row).Error)
}

// endTransfer writes what Redis said of a transfer. Given: in one transaction, with both rows locked in the order of their ids,
// total and stock of the one go down and of the other up, and a move is written that gives the units to the other's Redis;
// its id is the transfer's. Where the bucket sells no more the units go back, and where another epoch has begun it never
// lost them: either way the transfer is undone, for nobody waits for this one.
func (s *Store) endTransfer(ctx context.Context, c order.Cut, said order.Given, now time.Time) (order.Cut, seckill.Sale, error) {
	var cut cutRow
	var from saleRow
	var gives *order.Move
	err := s.inTx(ctx, "end a transfer", func(tx *gorm.DB) (err error) {
		var to saleRow
		if from, to, err = lockPair(tx, c.GoodsID, c.To); err != nil {
			return err
		}
		if cut, err = findCut(tx, c.GoodsID, c.ID); err != nil || cut.State != order.CutOpen {
			return err
		}
		switch {
		case cut.Epoch != from.Epoch || said == order.Covered || said == order.CutTooLarge:
			return undoCut(tx, &cut)
		case from.Status != seckill.Exposed || from.Stock < cut.Quantity:
			if _, err := raise(tx, from, cut.Quantity, now); err != nil {
				return err
			}
			return undoCut(tx, &cut)
		}
		gives, err = transfer(tx, &from, to, &cut, now)
		return err
	})
	if err != nil {
		return c, from.sale(), err
	}
	ended, err := cut.cut()
	ended.Gives = gives
	return ended, from.sale(), err
}

// lockPair locks the rows of two buckets.
func lockPair(tx *gorm.DB, from, to int64) (saleRow, saleRow, error) {
	low, err := lockSale(tx, min(from, to))
	if err != nil {
		return low, low, err
	}
	high, err := lockSale(tx, max(from, to))
	if from < to {
		return low, high, err
	}
	return high, low, err
}

func transfer(tx *gorm.DB, from *saleRow, to saleRow, cut *cutRow, now time.Time) (*order.Move, error) {
	if err := changeTotal(tx, *from, -cut.Quantity, now); err != nil {
		return nil, err
	}
	if err := changeTotal(tx, to, cut.Quantity, now); err != nil {
		return nil, err
	}
	from.Total, from.Stock = from.Total-cut.Quantity, from.Stock-cut.Quantity
	move := order.Move{
		ID: cut.ID, GoodsID: to.GoodsID, Epoch: to.Epoch, Kind: order.MoveDelta, Quantity: cut.Quantity,
		MadeAt: now.UTC().Truncate(time.Millisecond),
	}
	if err := insert(tx, []moveRow{rowOfMove(move)}); err != nil {
		return nil, err
	}
	cut.State = order.CutDone
	return &move, saveCut(tx, *cut)
}

// changeTotal adds units to a bucket (or takes them: negative) by compare-and-swap, as changeStock does.
func changeTotal(tx *gorm.DB, sale saleRow, units int64, now time.Time) error {
	res := tx.Exec(`UPDATE sales SET total = total + ?, stock = stock + ?, version = version + 1, updated_at = ?, retired_at = NULL
		WHERE goods_id = ? AND version = ? AND stock + ? >= 0`,
		units, units, now.UnixMilli(), sale.GoodsID, sale.Version, units)
	if res.Error == nil && res.RowsAffected != 1 {
		return order.ErrSwapMissed
	}
	return res.Error
}
