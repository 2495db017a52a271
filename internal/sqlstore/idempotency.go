package sqlstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"gorm.io/gorm"

	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/salechange"
)

type idempotencyRow struct {
	ActorID        int64  `gorm:"primaryKey;autoIncrement:false"`
	IdempotencyKey string `gorm:"primaryKey"`
	BodyHash       string
	GoodsID        int64
	CutID          string
	Answer         string
	MadeAt         int64
}

// TableName is GORM's name of the table.
func (idempotencyRow) TableName() string { return "idempotency_keys" }

// once runs the steps of a request in one transaction, unless its key was here before: then it gives that key's row and
// runs nothing. Steps insert the row themselves (remember), as their last word: of requests that come at once, one
// commits, and the others find its row.
func (s *Store) inTxOnce(ctx context.Context, op string, o salechange.IdempotencyKey, now time.Time, steps func(tx *gorm.DB) error) (*idempotencyRow, error) {
	if o.Key == "" {
		return nil, s.inTx(ctx, op, steps)
	}
	if row, err := s.findAnswer(ctx, o, now); row != nil || err != nil {
		return row, err
	}
	err := s.inTx(ctx, op, steps)
	if err == nil {
		return nil, nil
	}
	if row, known := s.findAnswer(ctx, o, now); row != nil || seckill.ReasonOf(known) != "" {
		return row, known // somebody else's transaction came first
	}
	return nil, err
}

// Answered gives the first answer to a request whose key was here before; false where there is none, or none yet.
func (s *Store) Answered(ctx context.Context, o salechange.IdempotencyKey, now time.Time) (seckill.Sale, bool, error) {
	row, err := s.findAnswer(ctx, o, now)
	if err != nil || row == nil || row.CutID != "" {
		return seckill.Sale{}, false, err
	}
	sale, err := row.sale()
	return sale, err == nil, err
}

// existingOrders finds the row of a key; nil where it is new. One that has outlived its time is removed.
func (s *Store) findAnswer(ctx context.Context, o salechange.IdempotencyKey, now time.Time) (*idempotencyRow, error) {
	var row idempotencyRow
	q := s.read(ctx).Where("actor_id = ? AND idempotency_key = ?", o.ActorID, o.Key)
	err := q.Take(&row).Error
	switch {
	case errors.Is(err, gorm.ErrRecordNotFound):
		return nil, nil
	case err != nil:
		return nil, wrapError("look for an idempotency key", err)
	case row.MadeAt < now.Add(-salechange.IdempotencyTTL).UnixMilli():
		err = s.read(ctx).Where("actor_id = ? AND idempotency_key = ? AND made_at = ?", o.ActorID, o.Key, row.MadeAt).Delete(&idempotencyRow{}).Error
		return nil, wrapError("remove an old idempotency key", err)
	case row.BodyHash != o.Hash:
		return nil, salechange.NewIdempotencyConflict()
	}
	return &row, nil
}

// saveAnswer keeps the answer to a request with a key: a sale, or that a cut is under way.
func saveAnswer(tx *gorm.DB, o salechange.IdempotencyKey, sale saleRow, cutID string, now time.Time) error {
	if o.Key == "" {
		return nil
	}
	row := idempotencyRow{ActorID: o.ActorID, IdempotencyKey: o.Key, BodyHash: o.Hash, GoodsID: sale.GoodsID, CutID: cutID, MadeAt: now.UnixMilli()}
	if cutID == "" {
		answer, err := json.Marshal(sale.sale())
		if err != nil {
			return fmt.Errorf("encode an answer: %w", err)
		}
		row.Answer = string(answer)
	}
	return tx.Create(&row).Error
}

// answered reads the sale that was answered.
func (r idempotencyRow) sale() (seckill.Sale, error) {
	var sale seckill.Sale
	if err := json.Unmarshal([]byte(r.Answer), &sale); err != nil {
		return sale, fmt.Errorf("read an answer: %w", err)
	}
	return sale, nil
}

// ForgetKeys forgets keys made before a moment.
func (s *Store) ForgetKeys(ctx context.Context, before time.Time) error {
	err := s.read(ctx).Where("made_at < ?", before.UnixMilli()).Delete(&idempotencyRow{}).Error
	return wrapError("forget idempotency keys", err)
}
