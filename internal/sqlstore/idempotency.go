package sqlstore

import (
	"context"
	"errors"
	"time"

	"gorm.io/gorm"

	"flashsale.dev/seckill/internal/apierror"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/salechange"
)

// idempotencyRow is the answer to a request with an Idempotency-Key. Its key is the actor's and not
// the goods', because a request that creates a sale has no goods yet.
type idempotencyRow struct {
	ActorID        string `gorm:"primaryKey;autoIncrement:false"`
	IdempotencyKey string `gorm:"primaryKey"`
	BodyHash       string
	GoodsID        int64
	CutID          string
	Answer         seckill.Sale `gorm:"serializer:json"` // zero while the cut is open
	MadeAt         int64
}

func (idempotencyRow) TableName() string { return "idempotency_keys" }

// runOnce runs the transaction of a request. For a repeated key it runs nothing and returns the
// key's row. The transaction inserts that row last (saveAnswer): of concurrent requests one
// commits, and the others find its row.
func (s *Store) runOnce(
	ctx context.Context, key salechange.IdempotencyKey, now time.Time, transaction func() error,
) (*idempotencyRow, error) {
	if key.Key == "" {
		return nil, transaction()
	}
	// Most repeats find the answer here, without a lock of the goods row.
	if row, err := s.findAnswer(ctx, key, now); row != nil || err != nil {
		return row, err
	}
	err := transaction()
	if err == nil {
		return nil, nil
	}
	row, refusal := s.findAnswer(ctx, key, now)
	if row != nil || apierror.ReasonOf(refusal) != "" {
		return row, refusal // a concurrent transaction committed first
	}
	return nil, err
}

// Answered returns the first answer to a request with this key; false where there is none yet.
func (s *Store) Answered(
	ctx context.Context, key salechange.IdempotencyKey, now time.Time,
) (seckill.Sale, bool, error) {
	row, err := s.findAnswer(ctx, key, now)
	if err != nil || row == nil || row.CutID != "" {
		return seckill.Sale{}, false, err
	}
	return row.Answer, true, nil
}

var errNewKey = errors.New("no such idempotency key")

// findAnswer returns the row of a key, or nil for a new key. It deletes a row that has expired.
func (s *Store) findAnswer(
	ctx context.Context, key salechange.IdempotencyKey, now time.Time,
) (*idempotencyRow, error) {
	q := s.read(ctx).Where("actor_id = ? AND idempotency_key = ?", key.ActorID, key.Key)
	row, err := take[idempotencyRow](q.Session(&gorm.Session{}), errNewKey)
	switch {
	case errors.Is(err, errNewKey):
		return nil, nil
	case err != nil:
		return nil, wrapError("find an idempotency key", err)
	case row.MadeAt < now.Add(-salechange.IdempotencyTTL).UnixMilli():
		// The condition on the time protects a newer row that a concurrent request has just
		// written.
		err = q.Where("made_at = ?", row.MadeAt).Delete(&idempotencyRow{}).Error
		return nil, wrapError("remove an old idempotency key", err)
	case row.BodyHash != key.Hash:
		return nil, salechange.NewIdempotencyConflict()
	}
	return &row, nil
}

// saveAnswer stores the answer to a request with a key: a sale, or the id of an open cut.
func saveAnswer(
	tx *gorm.DB, key salechange.IdempotencyKey, sale saleRow, cutID string, now time.Time,
) error {
	if key.Key == "" {
		return nil
	}
	row := idempotencyRow{
		ActorID: key.ActorID, IdempotencyKey: key.Key, BodyHash: key.Hash,
		GoodsID: sale.GoodsID, CutID: cutID, MadeAt: now.UnixMilli(),
	}
	if cutID == "" {
		row.Answer = sale.sale()
	}
	return tx.Create(&row).Error
}
