package sqlstore

import (
	"context"
	"strings"
	"time"

	"gorm.io/gorm"

	"flashsale.dev/seckill/internal/order/rebuild"
)

// endedPrefix marks an opening in sales.opened_on that nobody renews any more.
const endedPrefix = "-"

// RecordOpening records that the gate of an epoch opens on the master with a lease. With "" it
// records that the gate is open on none any more. It returns rebuild.ErrFenced for a token that is
// not the newest, or if another epoch has begun. It does so for "" too if the recorded opening has
// not ended.
func (s *Store) RecordOpening(
	ctx context.Context, goodsID, token, epoch int64, lease string,
) error {
	return s.inSaleTx(ctx, "record an opening", goodsID, func(tx *gorm.DB, row saleRow) error {
		// MySQL may have lost in a failover what EndOpening wrote before.
		open := lease == "" && !strings.HasPrefix(row.OpenedOn, endedPrefix)
		if row.RebuildToken != token || row.Epoch != epoch || open {
			return rebuild.ErrFenced
		}
		return setOpenedOn(tx, row, lease)
	})
}

// EndOpening ends the recorded opening of a sale and returns its lease, also if it has ended
// before; "" if none is recorded. It returns rebuild.ErrFenced for a token that is not the newest.
func (s *Store) EndOpening(ctx context.Context, goodsID, token int64) (string, error) {
	return inSaleTx(ctx, s, "end an opening", goodsID,
		func(tx *gorm.DB, row saleRow) (string, error) {
			if row.RebuildToken != token {
				return "", rebuild.ErrFenced
			}
			if row.OpenedOn == "" || strings.HasPrefix(row.OpenedOn, endedPrefix) {
				return strings.TrimPrefix(row.OpenedOn, endedPrefix), nil
			}
			return row.OpenedOn, setOpenedOn(tx, row, endedPrefix+row.OpenedOn)
		})
}

func setOpenedOn(tx *gorm.DB, row saleRow, lease string) error {
	return tx.Model(&saleRow{}).Where("goods_id = ?", row.GoodsID).
		Update("opened_on", lease).Error
}

// OpenedOn returns the lease of a recorded opening that has not ended; else "".
func (s *Store) OpenedOn(ctx context.Context, goodsID int64) (lease string, err error) {
	err = s.read(ctx).Model(&saleRow{}).Where("goods_id = ?", goodsID).
		Pluck("opened_on", &lease).Error
	if strings.HasPrefix(lease, endedPrefix) {
		lease = ""
	}
	return lease, wrapError("read an opening", err)
}

// OpenOn lists the sales whose opening is recorded on a lease and has not ended, but none that was
// retired before a moment.
func (s *Store) OpenOn(
	ctx context.Context, lease string, retiredSince time.Time,
) ([]rebuild.OpenSale, error) {
	var sales []rebuild.OpenSale
	err := s.read(ctx).Model(&saleRow{}).Select("goods_id", "epoch").Order("goods_id").
		Where("opened_on = ? AND (retired_at IS NULL OR retired_at > ?)", lease,
			retiredSince.UnixMilli()).Scan(&sales).Error
	return sales, wrapError("list open sales", err)
}
