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

// auditRow is one change of a sale. Was and Became are JSON, so a new field of a sale needs no
// migration.
type auditRow struct {
	GoodsID   int64  `gorm:"primaryKey;autoIncrement:false"`
	ID        string `gorm:"primaryKey"`
	ActorID   int64
	ActorRole seckill.Role
	Action    salechange.Action
	Was       string
	Became    string
	MadeAt    int64
}

// TableName implements GORM's Tabler.
func (auditRow) TableName() string { return "sale_audit" }

// AuditOf lists at most limit changes of a sale, newest first, with ids below before (empty: from
// the newest).
func (s *Store) AuditOf(
	ctx context.Context, goodsID int64, before string, limit int,
) ([]salechange.AuditEntry, error) {
	q := s.read(ctx).Where("goods_id = ?", goodsID)
	if before != "" {
		q = q.Where("id < ?", before)
	}
	return list("list changes of a sale", q.Order("id DESC").Limit(limit), auditRow.entry)
}

// entry converts the row.
func (r auditRow) entry() salechange.AuditEntry {
	return salechange.AuditEntry{
		ID: r.ID, GoodsID: r.GoodsID, ActorID: r.ActorID, Role: r.ActorRole, Action: r.Action,
		Was: json.RawMessage(r.Was), Became: json.RawMessage(r.Became), At: timeOf(&r.MadeAt),
	}
}

// audit records a change of a sale by the context's actor in the caller's transaction. The zero row
// represents a sale that does not exist before or after the change.
func audit(tx *gorm.DB, action salechange.Action, was, became saleRow, now time.Time) error {
	from, to, err := difference(was, became)
	if err != nil {
		return err
	}
	by := seckill.ActorOf(tx.Statement.Context)
	return tx.Create(&auditRow{
		GoodsID: max(was.GoodsID, became.GoodsID), ID: newID(), ActorID: by.ID,
		ActorRole: by.Role, Action: action, Was: from, Became: to, MadeAt: now.UnixMilli(),
	}).Error
}

// difference returns the changed fields before and after as two JSON objects.
func difference(was, became saleRow) (from, to string, err error) {
	a, b := audited(was), audited(became)
	// The entry keeps the fields that differ. For a created or deleted sale it keeps all fields of
	// the one side.
	for name := range b {
		if was.GoodsID != 0 && became.GoodsID != 0 && a[name] == b[name] {
			delete(a, name)
			delete(b, name)
		}
	}
	if was.GoodsID == 0 {
		clear(a)
	}
	if became.GoodsID == 0 {
		clear(b)
	}
	before, err1 := json.Marshal(a)
	after, err2 := json.Marshal(b)
	if err := errors.Join(err1, err2); err != nil {
		return "", "", fmt.Errorf("encode an audit entry: %w", err)
	}
	return string(before), string(after), nil
}

// audited returns the fields that merchants set, by their API names. Stock sold to buyers is
// recorded by orders instead.
func audited(r saleRow) map[string]any {
	const moment = "2006-01-02T15:04:05.000Z07:00"
	return map[string]any{
		"title": r.Title, "price": r.Price, "stock": r.Total, "perBuyerLimit": r.PerBuyerLimit,
		"startAt": timeOf(&r.StartAt).Format(moment), "endAt": timeOf(&r.EndAt).Format(moment),
		"rate.algorithm": r.RateAlgorithm, "rate.permitsPerSecond": r.PermitsPerSecond,
		"rate.maxBurstSeconds": r.MaxBurstSeconds, "rate.maxWaitMillis": r.MaxWaitMillis,
		"status": r.Status,
	}
}
