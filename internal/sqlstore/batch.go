package sqlstore

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/orderwriter"
	"flashsale.dev/seckill/internal/seckill/reservation"
)

// chunk is how many rows or keys one statement carries: the widest row has 14 columns, and MySQL takes 65,535
// placeholders. SQLite takes 32,766, but its driver looks for each by walking over all of them, so that many short
// statements are faster there, and cost no round trips.
const (
	chunk       = 1000
	sqliteChunk = 100
)

func chunkOf(tx *gorm.DB) int {
	if tx.Name() == "sqlite" {
		return sqliteChunk
	}
	return chunk
}

// originBatch is the origin of a dead letter whose order broke a rule while its batch was written.
const originBatch = "batch"

// WriteBatch writes the lines of one goods in one transaction: the goods row is locked first, numbers that are there
// already are left alone, the rest is judged one by one in its order. What the sale's limit or its stock no longer allows is
// written as failed, with a dead letter and a move; the others as created, with the buyers' holdings and one
// compare-and-swap on the stock. It bets first that all of them are new and allowed (writeNew), and asks where that is lost.
//
// It returns *order.AdoptError, having written nothing, for lines of an older epoch that b does not list as adopted by
// the present one; seckill.ErrNoSuchGoods; order.ErrTryAgain; or, plain, what is wrong with some line's data.
// It may be repeated after any error.
func (s *Store) WriteBatch(ctx context.Context, b orderwriter.Batch) (order.Outcome, error) {
	if s.optimism.try() {
		out, err := s.writeBy(ctx, writeOptimistically, b)
		if !errors.Is(err, errNotNew) {
			return out, err
		}
		s.optimism.failed()
	}
	return s.writeBy(ctx, writeBatch, b)
}

func (s *Store) writeBy(ctx context.Context, write func(*gorm.DB, orderwriter.Batch) (order.Outcome, error), b orderwriter.Batch) (order.Outcome, error) {
	var out order.Outcome
	err := s.inTx(ctx, "write a batch", func(tx *gorm.DB) (err error) {
		out, err = write(tx, b)
		return err
	})
	if err != nil {
		return order.Outcome{}, err
	}
	return out, nil
}

func writeBatch(tx *gorm.DB, b orderwriter.Batch) (order.Outcome, error) {
	sale, err := lockSale(tx, b.GoodsID)
	if err != nil {
		return order.Outcome{}, err
	}
	lines := distinct(b.Lines)
	existing, tombs, err := existingOrders(tx, b.GoodsID, numbers(lines))
	if err != nil {
		return order.Outcome{}, err
	}
	lost := linesIn(lines, tombs)
	fresh := slices.DeleteFunc(lines, func(l reservation.OrderLine) bool { _, there := existing[l.OrderSn]; return there })
	if len(fresh)+len(lost) == 0 {
		return order.Outcome{Epoch: sale.Epoch, Existing: existing}, nil
	}
	if strangers := toAdopt(b, sale.Epoch, fresh); len(strangers) > 0 {
		return order.Outcome{}, &orderwriter.AdoptError{Epoch: sale.Epoch, Limit: sale.MaxPerBuyerLimit, OrderSns: strangers}
	}
	held, err := holdings(tx, b.GoodsID, buyers(fresh))
	if err != nil {
		return order.Outcome{}, err
	}
	p, err := judge(sale, held, b, fresh)
	if err != nil {
		return order.Outcome{}, err
	}
	if err := p.claimTombstones(lost, b); err != nil {
		return order.Outcome{}, err
	}
	p.out.Existing = existing
	return p.out, p.write(tx)
}

// write puts a plan into the tables.
func (p *batchPlan) write(tx *gorm.DB) error {
	if err := insert(tx, p.orders); err != nil {
		return err
	}
	if err := setHoldings(tx, p.sale.GoodsID, p.holdings); err != nil {
		return err
	}
	if err := changeStock(tx, p.sale, -p.sold, p.now); err != nil {
		return err
	}
	if err := insert(tx, p.deadLetters); err != nil {
		return err
	}
	if err := fillTombstones(tx, p.claimed); err != nil {
		return err
	}
	if len(p.out.Moves) > 0 {
		if err := unretire(tx, &p.sale); err != nil {
			return err
		}
	}
	return insert(tx, mapSlice(p.out.Moves, rowOfMove))
}

// changeStock adds units to a goods' stock (or takes them: negative) by compare-and-swap on the version that was read with
// the row locked. A swap that misses means somebody wrote without the lock, or more was to be taken than there is:
// order.ErrTryAgain, and a new transaction sees the truth.
func changeStock(tx *gorm.DB, sale saleRow, units int64, now time.Time) error {
	if units == 0 {
		return nil
	}
	res := tx.Exec(`UPDATE sales SET stock = stock + ?, version = version + 1, updated_at = ?, retired_at = NULL
		WHERE goods_id = ? AND version = ? AND stock + ? >= 0`,
		units, now.UnixMilli(), sale.GoodsID, sale.Version, units)
	if res.Error == nil && res.RowsAffected != 1 {
		return order.ErrSwapMissed
	}
	return res.Error
}

// statuses finds which order numbers are there, and in which state.
func statuses(tx *gorm.DB, goodsID int64, sns []string) (map[string]order.Status, error) {
	found, _, err := existingOrders(tx, goodsID, sns)
	return found, err
}

// existingOrders is statuses, and which of the numbers are tombs.
func existingOrders(tx *gorm.DB, goodsID int64, sns []string) (map[string]order.Status, map[string]bool, error) {
	found, tombs := make(map[string]order.Status), make(map[string]bool)
	for part := range slices.Chunk(sns, chunkOf(tx)) {
		var rows []orderRow
		err := tx.Select("order_sn", "status", "failure_reason", "quantity").
			Where("goods_id = ? AND order_sn IN ?", goodsID, part).Find(&rows).Error
		if err != nil {
			return nil, nil, err
		}
		for _, r := range rows {
			found[r.OrderSn] = r.Status
			if r.order().Tombstone() {
				tombs[r.OrderSn] = true
			}
		}
	}
	return found, tombs, nil
}

// holdings reads what buyers hold; who is not in the map holds nothing. The goods row must be locked.
func holdings(tx *gorm.DB, goodsID int64, ids []int64) (map[int64]int64, error) {
	held := make(map[int64]int64, len(ids))
	for part := range slices.Chunk(ids, chunkOf(tx)) {
		var rows []holdingRow
		err := tx.Where("goods_id = ? AND buyer_id IN ?", goodsID, part).Find(&rows).Error
		if err != nil {
			return nil, err
		}
		for _, r := range rows {
			held[r.BuyerID] = r.Held
		}
	}
	return held, nil
}

// setHoldings writes what buyers hold from now on. The goods row must be locked.
func setHoldings(tx *gorm.DB, goodsID int64, held map[int64]int64) error {
	rows := make([]holdingRow, 0, len(held))
	for _, id := range slices.Sorted(maps.Keys(held)) {
		rows = append(rows, holdingRow{GoodsID: goodsID, BuyerID: id, Held: held[id]})
	}
	return insert(tx.Clauses(clause.OnConflict{
		Columns:   []clause.Column{{Name: "goods_id"}, {Name: "buyer_id"}},
		DoUpdates: clause.AssignmentColumns([]string{"held"}),
	}), rows)
}

// insert writes rows in statements of a bounded size.
func insert[R any](tx *gorm.DB, rows []R) error {
	tx = tx.Session(&gorm.Session{})
	for part := range slices.Chunk(rows, chunkOf(tx)) {
		if err := tx.Create(&part).Error; err != nil {
			return err
		}
	}
	return nil
}
