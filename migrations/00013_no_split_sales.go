package migrations

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/pressly/goose/v3"
)

// The ids of sales whose stock earlier releases split. splitBit is set in ids from splitFrom on.
// rowBits are the number of a goods among the rows of its sale.
const (
	splitBit  = 1 << 21
	rowBits   = 63 << 12
	splitFrom = (1_795_219_200_000 - 1_735_689_600_000) << 22
)

// SplitSaleError refuses step 13 while a sale with split stock is not over. GoodsID is the id of
// that sale.
type SplitSaleError struct{ GoodsID int64 }

// Error names the sale and what to do.
func (e *SplitSaleError) Error() string {
	return fmt.Sprintf("the stock of sale %d is split, which this release does not support: "+
		"close the sale or let it end (delete it if it is a draft), wait ten seconds, and migrate "+
		"again; until then run the previous release", e.GoodsID)
}

// NoSplitSales is step 13. It is in Go because SQL for both MySQL and SQLite cannot refuse with a
// message. It returns a *SplitSaleError while a split sale is on sale, is a draft, or has units on
// their way between its rows.
//
// The step keeps the rows of split sales that are over, with their orders: sales.bucket excludes
// them from lists. It keeps the columns of step 12 too, because programs of the previous release
// write them during an upgrade. It removes the finished transfers.
func NoSplitSales() *goose.Migration {
	return goose.NewGoMigration(13, &goose.GoFunc{RunTx: endSplitSales},
		&goose.GoFunc{Mode: goose.TransactionEnabled})
}

// endSplitSales searches for live split sales and then removes the finished transfers.
func endSplitSales(ctx context.Context, tx *sql.Tx) error {
	var found sql.NullInt64
	err := tx.QueryRowContext(ctx, `SELECT MIN(goods_id) FROM (
			SELECT goods_id FROM sales WHERE bucket <> 0 AND status = 'exposed' AND end_at > ?
			UNION ALL SELECT goods_id FROM sales
				WHERE status = 'draft' AND goods_id >= ? AND goods_id & ? <> 0
			UNION ALL SELECT goods_id FROM stock_cuts
				WHERE to_goods_id <> 0 AND state = 'open') AS live`,
		time.Now().UnixMilli(), int64(splitFrom), splitBit).Scan(&found)
	if err != nil {
		return fmt.Errorf("find split sales: %w", err)
	}
	if found.Valid {
		return &SplitSaleError{GoodsID: found.Int64 &^ rowBits}
	}
	if _, err := tx.ExecContext(ctx, `DELETE FROM stock_cuts WHERE to_goods_id <> 0`); err != nil {
		return fmt.Errorf("remove transfers: %w", err)
	}
	return nil
}
