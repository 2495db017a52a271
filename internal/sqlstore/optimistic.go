package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"gorm.io/gorm"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/orderwriter"
	"flashsale.dev/seckill/internal/seckill/reservation"
)

// errNotNew means that a key exists already; the transaction must roll back.
var errNotNew = errors.New("an order or a buyer of the batch exists already")

// errLate is the errNotNew of a batch with late orders. They are rare and say nothing of the next
// batches.
var errLate = fmt.Errorf("%w: it has late orders", errNotNew)

// pauseBatches is how many batches skip the optimistic insert after one failed. With returning
// buyers or repeated messages, a second attempt for each batch would cost more than reading first.
// But in a rush eight batches have thousands of orders, and one repeated message must not slow
// more.
const pauseBatches = 8

// optimism decides whether the next batch tries the optimistic insert. In a rush nearly every order
// number and buyer is new. The tables' keys then detect the exceptions, and a batch costs half as
// much as with two queries before it.
type optimism struct{ paused atomic.Int64 }

// try reports whether this batch should try. Concurrent batches of other goods share the count.
func (o *optimism) try() bool { return o.paused.Add(-1) < 0 }

// failed makes the next pauseBatches batches read first.
func (o *optimism) failed() { o.paused.Store(pauseBatches) }

// maxLastRows is the number of sales whose rows the store remembers.
const maxLastRows = 100

// writeOptimistically writes a batch of at least one line, in which every number and every buyer is
// new and all lines are allowed; errNotNew otherwise.
//
// It takes the units first, from the row as this store's last batch left it. The compare-and-swap
// locks that row without a query of its own, so no other writer interferes from then on. Where it
// misses, another writer has changed the row. The row may also be too old to judge the batch by. In
// both cases writeOptimistically reads the row with a lock and tries once more.
func (s *Store) writeOptimistically(
	ctx context.Context, b orderwriter.Batch,
) (order.Outcome, error) {
	b.Lines = distinct(b.Lines)
	var after saleRow
	out, err := inSlotTx(ctx, s, opWriteBatch, b.GoodsID,
		func(tx *gorm.DB) (out order.Outcome, err error) {
			var p *batchPlan
			last, known := s.lastRows.Get(b.GoodsID)
			if known {
				p, err = takeForNew(tx, last, b)
			}
			if !known || errors.Is(err, order.ErrSwapMissed) || errors.Is(err, errNotNew) {
				if last, err = lockSale(tx, b.GoodsID); err == nil {
					p, err = takeForNew(tx, last, b)
				}
			}
			if err != nil {
				return out, err
			}
			after = p.rowAfter()
			return p.out, p.insertNew(tx)
		})
	if isDuplicate(err) {
		return out, errNotNew
	}
	if err == nil {
		s.lastRows.Add(b.GoodsID, after)
	}
	return out, err
}

// takeForNew plans a batch of new orders and takes their units. It returns errNotNew for a batch in
// which any line is late, refused or invalid: writeBatch decides on that one.
func takeForNew(tx *gorm.DB, sale saleRow, b orderwriter.Batch) (*batchPlan, error) {
	isLate := func(l reservation.OrderLine) bool { return l.Epoch < sale.Epoch }
	if slices.ContainsFunc(b.Lines, isLate) {
		return nil, errLate
	}
	times := b.Times
	b.Times = times.Later()
	p, err := judge(sale, nil, b, b.Lines)
	if err != nil || len(p.out.Failed) > 0 {
		return nil, errNotNew
	}
	err = changeStock(tx, p.sale, -p.sold, p.now)
	p.payBy = times.Later().PayBy.UnixMilli() // changeStock may have waited for the lock
	return p, err
}

// rowAfter returns the sale's row after changeStock, without the texts that no batch reads.
func (p *batchPlan) rowAfter() saleRow {
	row := p.sale
	row.Stock, row.Version, row.Updated = row.Stock-p.sold, row.Version+1, p.now.UnixMilli()
	row.RetiredAt = nil
	row.Description, row.ImageURL, row.Metadata = "", "", nil
	return row
}

// insertNew writes plain inserts, so that a key that exists fails the statement instead of updating
// a row.
func (p *batchPlan) insertNew(tx *gorm.DB) error {
	if err := p.insertOrders(tx); err != nil {
		return err
	}
	if err := insertHoldings(tx, p.sale.GoodsID, p.holdings); err != nil {
		return err
	}
	return p.addEvents(tx)
}

// insertOrders inserts new orders with a statement of its own. GORM's reflection over a large batch
// costs as much CPU as the rest of the write. The text has the numbers that all orders share,
// because each argument costs time.
func (p *batchPlan) insertOrders(tx *gorm.DB) error {
	const columns = `goods_id, status, failure_reason, created_at, pay_by,
		order_sn, buyer_id, epoch, quantity, amount, name, phone`
	tuple := fmt.Sprintf("(%d,'%s','',%d,%d,?,?,?,?,?,?,?)",
		p.sale.GoodsID, order.Created, p.now.UnixMilli(), p.payBy)
	return insertValues(tx, "orders", columns, tuple, p.orders,
		func(values []any, r *orderRow) []any {
			return append(values, r.OrderSn, r.BuyerID, r.Epoch, r.Quantity, r.Amount, r.Name,
				r.Phone)
		})
}

// insertHoldings inserts holdings of buyers who had none.
func insertHoldings(tx *gorm.DB, goodsID int64, held map[string]int64) error {
	ids := slices.Sorted(maps.Keys(held))
	tuple := fmt.Sprintf("(%d,?,?)", goodsID)
	return insertValues(tx, "buyer_holdings", "goods_id, buyer_id, held", tuple, ids,
		func(values []any, id *string) []any { return append(values, *id, held[*id]) })
}

// insertValues inserts rows in statements of bounded size on the transaction's connection. tuple is
// the text of one row's values in the order of columns. valuesOf appends the values of its
// placeholders; each must be a type that the driver accepts.
func insertValues[R any](
	tx *gorm.DB, table, columns, tuple string, rows []R, valuesOf func([]any, *R) []any,
) error {
	width := strings.Count(tuple, "?")
	for part := range slices.Chunk(rows, chunkOf(tx)) {
		values := make([]any, 0, len(part)*width)
		for i := range part {
			values = valuesOf(values, &part[i])
		}
		statement := "INSERT INTO " + table + " (" + columns + ") VALUES " +
			strings.Repeat(tuple+",", len(part)-1) + tuple
		_, err := tx.Statement.ConnPool.ExecContext(tx.Statement.Context, statement, values...)
		if err != nil {
			return translated(tx, err)
		}
	}
	return nil
}
