package sqlstore

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"flashsale.dev/seckill/internal/event"
	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/orderwriter"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/reservation"
)

// chunk is how many rows or keys one statement contains. An order has 19 columns, and MySQL accepts
// 65,535 placeholders. MariaDB makes a subquery of a list of 1000 keys or more, and ignores the
// range of a later column then. SQLite's driver searches its placeholders linearly, so short
// statements are faster there and cost no round trip.
const (
	chunk       = 999
	sqliteChunk = 100
)

// chunkOf returns how many rows or keys a statement on this database may contain.
func chunkOf(tx *gorm.DB) int {
	if isSQLite(tx) {
		return sqliteChunk
	}
	return chunk
}

// isSQLite reports whether statements go to SQLite. GORM reports the name of its dialect, so the
// store keeps no copy of it.
func isSQLite(db *gorm.DB) bool { return db.Name() == "sqlite" }

// originBatch is the origin of a dead letter whose order broke a rule while its batch was written.
const originBatch = "batch"

// WriteBatch writes the order lines of one goods in one transaction. It locks the goods row, skips
// numbers that exist, and decides on the others one by one in their order. Lines that the stock or
// the buyer's limit refuses become failed orders with a dead letter and a stock move. The others
// become created orders. WriteBatch then updates the buyers' holdings, and the stock by one
// compare-and-swap.
//
// WriteBatch first tries an optimistic insert (writeOptimistically), which saves the reads.
//
// Lines of an older epoch that b does not list as adopted by the present one are parked if b asks
// for that. Otherwise WriteBatch writes nothing and returns an *orderwriter.AdoptError. The other
// errors, with nothing written either, are seckill.ErrNoSuchGoods, and a plain error for invalid
// data. The caller may repeat the call after any error.
func (s *Store) WriteBatch(ctx context.Context, b orderwriter.Batch) (order.Outcome, error) {
	if len(b.Lines) > 0 && s.optimism.try() {
		out, err := s.writeOptimistically(ctx, b)
		if !errors.Is(err, errNotNew) {
			return out, err
		}
		if !errors.Is(err, errLate) {
			s.optimism.failed()
		}
	}
	return inSaleTx(ctx, s, opWriteBatch, b.GoodsID,
		func(tx *gorm.DB, sale saleRow) (order.Outcome, error) {
			b := b
			b.Times = b.Later()
			return writeBatch(tx, sale, b)
		})
}

const opWriteBatch = "write a batch"

// writeBatch reads existing rows before it decides on the lines. It is correct for every batch; the
// optimistic way is only faster.
func writeBatch(tx *gorm.DB, sale saleRow, b orderwriter.Batch) (order.Outcome, error) {
	lines := distinct(b.Lines)
	existing, tombstones, err := existingOrders(tx, b.GoodsID, numbersOf(lines))
	if err != nil {
		return order.Outcome{}, err
	}
	// A tombstone has a row, so its line is lost and not fresh.
	lost := filter(lines, func(l reservation.OrderLine) bool { return tombstones[l.OrderSn] })
	fresh := filter(lines,
		func(l reservation.OrderLine) bool { _, there := existing[l.OrderSn]; return !there })
	// Redis was rebuilt without these lines. Their units must be taken in the present epoch first,
	// or the sale would promise them twice.
	late := toAdopt(b, sale.Epoch, fresh)
	if len(late) > 0 && !b.Park {
		return order.Outcome{}, &orderwriter.AdoptError{
			Epoch: sale.Epoch, Limit: sale.MaxPerBuyerLimit, OrderSns: numbersOf(late),
		}
	}
	if err := updateParked(tx, sale, b, lines, late); err != nil {
		return order.Outcome{}, err
	}
	fresh = without(fresh, late)
	if len(fresh)+len(lost) == 0 {
		return order.Outcome{Existing: existing}, nil
	}
	held, err := holdings(tx, b.GoodsID, buyers(fresh))
	if err != nil {
		return order.Outcome{}, err
	}
	p, err := judge(sale, held, b, fresh)
	if err != nil {
		return order.Outcome{}, err
	}
	if err := p.addTombstones(lost, b); err != nil {
		return order.Outcome{}, err
	}
	p.out.Existing = existing
	return p.out, p.write(tx)
}

// updateParked parks the late lines of a batch, and removes its other lines of older epochs from
// the parked ones: they have a row, or get it in this transaction.
func updateParked(
	tx *gorm.DB, sale saleRow, b orderwriter.Batch, lines, late []reservation.OrderLine,
) error {
	older := filter(lines, func(l reservation.OrderLine) bool { return l.Epoch < sale.Epoch })
	if len(late) > 0 {
		if err := park(tx, sale, late, b.Now); err != nil {
			return err
		}
	}
	return unpark(tx, sale.GoodsID, numbersOf(without(older, late)))
}

// without returns lines without those of drop.
func without(lines, drop []reservation.OrderLine) []reservation.OrderLine {
	return filter(lines, func(l reservation.OrderLine) bool { return !slices.Contains(drop, l) })
}

// write executes the plan.
func (p *batchPlan) write(tx *gorm.DB) error {
	// Insert the orders first: their key detects a writer that ignored the lock before the units
	// are counted.
	if err := insert(tx, p.orders); err != nil {
		return err
	}
	if err := setHoldings(tx, p.sale.GoodsID, p.holdings); err != nil {
		return err
	}
	if err := changeStock(tx, p.sale, -p.sold, p.now); err != nil {
		return err
	}
	if err := p.addEvents(tx); err != nil {
		return err
	}
	if err := insert(tx, p.deadLetters); err != nil {
		return err
	}
	if err := fillTombstones(tx, p.tombstones); err != nil {
		return err
	}
	if len(p.out.Moves) > 0 {
		// changeStock clears the mark too, but a batch of failures alone changes no stock.
		if err := unretire(tx, &p.sale); err != nil {
			return err
		}
	}
	return insert(tx, mapSlice(p.out.Moves, rowOfMove))
}

// changeStock adds units to a goods' stock (negative: takes them) by compare-and-swap. sale is the
// row that was read under the lock, or that the last batch left. order.ErrSwapMissed means that the
// row has changed or that too few units are left. A new transaction reads the current row. now is
// after the sale's last change (changeTime).
func changeStock(tx *gorm.DB, sale saleRow, units int64, now time.Time) error {
	// A batch without created orders does not change the row and its version.
	if units == 0 {
		return nil
	}
	err := requireRows(tx.Exec(`UPDATE sales
		SET stock = stock + ?, version = version + 1, updated_at = ?, retired_at = NULL
		WHERE goods_id = ? AND version = ? AND epoch = ? AND updated_at = ? AND stock + ? >= 0`,
		units, now.UnixMilli(), sale.GoodsID, sale.Version, sale.Epoch, sale.Updated, units),
		1, order.ErrSwapMissed)
	// A closed sale sells nothing: its last orders make it neither exposed nor sold out.
	if err != nil || sale.Stock+units > 0 || sale.Status != seckill.Exposed {
		return err
	}
	return addSaleEvent(tx, sale, event.SaleSoldOut, now)
}

// existingOrders returns the state of each order number that has a row, and which of the numbers
// are tombstones.
func existingOrders(
	tx *gorm.DB, goodsID int64, sns []string,
) (map[string]order.Status, map[string]bool, error) {
	// The rest stays in the database: names and phone numbers make up most of a row.
	type row struct {
		OrderSn       string
		Status        order.Status
		FailureReason order.FailureReason
		Quantity      int64
	}
	columns := tx.Table(orderRow{}.TableName()).
		Select("order_sn", "status", "failure_reason", "quantity")
	rows, err := findIn[row](columns, goodsID, "order_sn", sns)
	found, tombstones := make(map[string]order.Status, len(rows)), make(map[string]bool)
	for _, r := range rows {
		found[r.OrderSn] = r.Status
		o := order.Order{
			OrderLine: reservation.OrderLine{Quantity: r.Quantity},
			Status:    r.Status, FailureReason: r.FailureReason,
		}
		if o.Tombstone() {
			tombstones[r.OrderSn] = true
		}
	}
	return found, tombstones, err
}

// holdings reads the units that buyers hold. Buyers without holdings are missing from the map. The
// caller has locked the goods row.
func holdings(tx *gorm.DB, goodsID int64, ids []string) (map[string]int64, error) {
	rows, err := findIn[holdingRow](tx, goodsID, "buyer_id", ids)
	held := make(map[string]int64, len(ids))
	for _, r := range rows {
		held[r.BuyerID] = r.Held
	}
	return held, err
}

// setHoldings stores the new units of buyers. The caller has locked the goods row.
func setHoldings(tx *gorm.DB, goodsID int64, held map[string]int64) error {
	rows := make([]holdingRow, 0, len(held))
	// Ascending ids walk the primary key in its order.
	for _, id := range slices.Sorted(maps.Keys(held)) {
		rows = append(rows, holdingRow{GoodsID: goodsID, BuyerID: id, Held: held[id]})
	}
	return insert(tx.Clauses(clause.OnConflict{
		Columns:   []clause.Column{{Name: "goods_id"}, {Name: "buyer_id"}},
		DoUpdates: clause.AssignmentColumns([]string{"held"}),
	}), rows)
}

// insert writes rows in statements of bounded size.
func insert[R any](tx *gorm.DB, rows []R) error {
	return tx.CreateInBatches(rows, chunkOf(tx)).Error
}
