package sqlstore

import (
	"context"
	"errors"

	"gorm.io/gorm"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/waitingroom"
	"flashsale.dev/seckill/internal/waitingroom/admission"
)

// roomRow is the waiting room of a sale.
type roomRow struct {
	GoodsID  int64 `gorm:"primaryKey;autoIncrement:false"`
	Seed     string
	Lease    string
	Granted  int64
	Joined   int64
	Admitted int64
	Turns    []admission.Turn `gorm:"serializer:json"`
	Gaps     []admission.Gap  `gorm:"serializer:json"`
	Digest   string
	DrawSize int64
	Calls    int64
}

func (roomRow) TableName() string { return "waiting_rooms" }

func (r roomRow) record() admission.Record {
	return admission.Record{
		Seed: r.Seed, Lease: r.Lease, Limit: r.Granted, Joined: r.Joined,
		Admitted: r.Admitted, Turns: r.Turns, Gaps: r.Gaps, Digest: r.Digest,
		DrawSize: r.DrawSize, Calls: r.Calls,
	}
}

// errNoRoom means that a sale with a waiting room has no row, which only a program error causes.
var errNoRoom = errors.New("the sale has no waiting room")

// openRoom makes the room of a sale that is exposed. The hash of its seed is public from then on,
// so the seed never changes.
func openRoom(tx *gorm.DB, sale saleRow) error {
	if sale.Admission != seckill.ByWaitingRoom {
		return nil
	}
	return tx.Create(&roomRow{
		GoodsID: sale.GoodsID, Seed: waitingroom.NewSeed().Hex(), Turns: []admission.Turn{},
		Gaps: []admission.Gap{}, DrawSize: admission.NotDrawn,
	}).Error
}

// WaitingRoom reads the room of a sale.
func (s *Store) WaitingRoom(ctx context.Context, goodsID int64) (admission.Record, error) {
	row, err := take[roomRow](s.read(ctx).Where("goods_id = ?", goodsID), errNoRoom)
	return row.record(), wrapError("read a waiting room", err)
}

// GrantNumbers grants a master further numbers, unless its limit is already above g.Above.
//
// A new lease continues with the numbers of the last lease if g.Replaces is that one: the same
// master still has the whole room. Any other new lease gets numbers above all that were granted
// before. The granted numbers that its Redis does not know become a gap, because the last master
// may have handed them out. A lease of an older epoch than the last one's changes nothing: its
// caller has read Redis before a rebuild.
func (s *Store) GrantNumbers(
	ctx context.Context, goodsID int64, g admission.Grant,
) (admission.Record, error) {
	return s.changeRoom(ctx, "grant numbers", goodsID, func(r *roomRow) bool {
		if r.Lease == g.Lease && r.Granted > g.Above ||
			admission.EpochOf(g.Lease) < admission.EpochOf(r.Lease) {
			return false
		}
		if r.Lease != g.Lease {
			r.Joined = max(r.Joined, g.Joined)
			if r.Lease == g.Replaces && r.Joined < r.Granted {
				r.Lease = g.Lease
				return true
			}
			if r.Joined < r.Granted {
				r.Gaps = append(r.Gaps, admission.Gap{From: r.Joined + 1, To: r.Granted})
			}
			r.Lease, r.Joined = g.Lease, r.Granted
		}
		r.Granted += g.Numbers
		return true
	})
}

// Draw fixes the draw of a room, once: the numbers from 1 to size, and the digest. It changes
// nothing for another lease than the last one's.
func (s *Store) Draw(
	ctx context.Context, goodsID int64, lease string, size int64, digest string,
) (admission.Record, error) {
	return s.changeRoom(ctx, "draw", goodsID, func(r *roomRow) bool {
		if r.Lease != lease || r.DrawSize != admission.NotDrawn {
			return false
		}
		r.DrawSize, r.Digest = size, digest
		r.Joined = max(r.Joined, size) // a room that is lost now has no gap in its draw
		return true
	})
}

// SaveRoom saves the progress of a room. It changes nothing for another lease than the last one's,
// or if later progress was saved.
func (s *Store) SaveRoom(
	ctx context.Context, goodsID int64, lease string, now admission.Record,
) error {
	_, err := s.changeRoom(ctx, "save a waiting room", goodsID, func(r *roomRow) bool {
		if r.Lease != lease || r.Calls >= now.Calls {
			return false
		}
		r.Joined, r.Admitted = max(r.Joined, now.Joined), now.Admitted
		r.Turns, r.Calls = now.Turns, now.Calls
		if r.DrawSize == admission.NotDrawn {
			r.Digest = now.Digest
		}
		return true
	})
	return err
}

// changeRoom changes the locked row of a room where change reports so, and returns the row. It does
// not lock the goods row: the writer of orders would wait for it.
func (s *Store) changeRoom(
	ctx context.Context, op string, goodsID int64, change func(*roomRow) bool,
) (admission.Record, error) {
	return inTx(ctx, s, op, func(tx *gorm.DB) (admission.Record, error) {
		row, err := take[roomRow](locked(tx).Where("goods_id = ?", goodsID), errNoRoom)
		if err == nil && change(&row) {
			err = tx.Model(&roomRow{}).Where("goods_id = ?", goodsID).Select("lease", "granted",
				"joined", "admitted", "turns", "gaps", "digest", "draw_size", "calls").Updates(&row).Error
		}
		return row.record(), err
	})
}

// HeldUnits returns the units that may return to the sale. The index orders_due has all that it
// reads of orders.
func (s *Store) HeldUnits(ctx context.Context, goodsID int64) (admission.Held, error) {
	var found struct {
		Units, Stock int64
		PayBy        *int64
	}
	err := s.read(ctx).Model(&orderRow{}).
		Select(`COALESCE(SUM(quantity), 0) AS units, MAX(pay_by) AS pay_by,
			(SELECT stock FROM sales WHERE goods_id = ?) AS stock`, goodsID).
		Where("goods_id = ? AND status = ?", goodsID, order.Created).Scan(&found).Error
	return admission.Held{Units: found.Units, Until: timeOf(found.PayBy), Stock: found.Stock},
		wrapError("read the units that are held", err)
}
