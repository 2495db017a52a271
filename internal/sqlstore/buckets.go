package sqlstore

import (
	"context"
	"slices"

	"gorm.io/gorm"

	"flashsale.dev/seckill/internal/seckill"
)

// A sale whose stock is split has a row for each of its buckets from the moment on that it is exposed; a draft has one. What
// merchants do to a sale locks all of its rows, in the order of their ids.

// Bucket reads the row of one goods: a sale's own, or a bucket's; seckill.ErrNoSuchGoods where there is none.
func (s *Store) Bucket(ctx context.Context, goodsID int64) (seckill.Sale, error) {
	row, err := findSale(s.read(ctx), goodsID)
	return row.sale(), trouble("find a sale", err)
}

// Buckets reads the rows of a sale's buckets, its own first, all from one statement; seckill.ErrNoSuchGoods where there is none,
// and for a bucket's own id.
func (s *Store) Buckets(ctx context.Context, goodsID int64) ([]seckill.Sale, error) {
	rows, err := findBuckets(s.read(ctx), goodsID)
	return each(rows, saleRow.sale), trouble("find a sale", err)
}

func findBuckets(q *gorm.DB, goodsID int64) ([]saleRow, error) {
	if seckill.IsBucket(goodsID) {
		return nil, seckill.ErrNoSuchGoods
	}
	var rows []saleRow
	err := q.Where("goods_id IN ?", seckill.BucketsOf(goodsID)).Order("goods_id").Find(&rows).Error
	if err == nil && len(rows) == 0 {
		err = seckill.ErrNoSuchGoods
	}
	return rows, err
}

// lockSales locks the rows of a sale, its own first; of a draft there is but one.
func lockSales(tx *gorm.DB, goodsID int64) ([]saleRow, error) {
	if seckill.IsBucket(goodsID) {
		return nil, seckill.ErrNoSuchGoods
	}
	row, err := lockSale(tx, goodsID)
	rows := []saleRow{row}
	if err != nil || row.Status == seckill.Draft {
		return rows, err
	}
	for _, id := range seckill.BucketsOf(goodsID)[1:] {
		if row, err = lockSale(tx, id); err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// whole adds the rows of a sale up: units, the highest epoch, and whether all are retired.
func whole(rows []saleRow) saleRow {
	sum := rows[0]
	for _, r := range rows[1:] {
		sum.Total, sum.Stock, sum.Epoch = sum.Total+r.Total, sum.Stock+r.Stock, max(sum.Epoch, r.Epoch)
		if r.Retired == nil {
			sum.Retired = nil
		}
	}
	return sum
}

// addBuckets makes whole sales of a list of their own rows, in one more statement where any is split.
func addBuckets(q *gorm.DB, sales []saleRow) ([]saleRow, error) {
	var others []int64
	place := make(map[int64]int)
	for i, r := range sales {
		if ids := seckill.BucketsOf(r.GoodsID); len(ids) > 1 && r.Status != seckill.Draft {
			others, place[r.GoodsID] = append(others, ids[1:]...), i
		}
	}
	for part := range slices.Chunk(others, chunkOf(q)) {
		var rows []saleRow
		if err := q.Where("goods_id IN ?", part).Find(&rows).Error; err != nil {
			return nil, err
		}
		for _, r := range rows {
			i := place[seckill.SaleOf(r.GoodsID)]
			sales[i] = whole([]saleRow{sales[i], r})
		}
	}
	return sales, nil
}

// split shares the stock of a draft that is just being exposed out over its buckets, makes the rows of the others, and gives
// them. What a bucket's row has besides its units is the sale's.
func split(tx *gorm.DB, row *saleRow) ([]saleRow, error) {
	ids := seckill.BucketsOf(row.GoodsID)
	if len(ids) == 1 {
		return nil, nil
	}
	shares := seckill.Shares(row.Total, len(ids))
	rest := make([]saleRow, 0, len(ids)-1)
	for i, id := range ids[1:] {
		r := *row
		r.GoodsID, r.Bucket, r.RebuildToken = id, i+1, 0
		r.Total, r.Stock = shares[i+1], shares[i+1]
		rest = append(rest, r)
	}
	row.Total, row.Stock = shares[0], shares[0]
	return rest, insert(tx, rest)
}

// elsewhere sums up what the other buckets of a sale have in stock, as it was committed last.
func elsewhere(tx *gorm.DB, goodsID int64) (int64, error) {
	ids := seckill.BucketsOf(goodsID)
	if len(ids) == 1 {
		return 0, nil
	}
	var units int64
	err := tx.Raw(`SELECT COALESCE(SUM(stock), 0) FROM sales WHERE goods_id IN ? AND goods_id <> ?`, ids, goodsID).Scan(&units).Error
	return units, err
}
