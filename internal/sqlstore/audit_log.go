package sqlstore

import (
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"time"

	"gorm.io/gorm"

	"flashsale.dev/seckill/internal/event"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/salechange"
)

// auditRow is one entry of the audit log: a change of a sale, an order, a webhook, an API key or a
// limiter, or an operator's decision. The database has Was and Became as JSON, so a new field of a
// sale needs no migration.
type auditRow struct {
	GoodsID    int64  `gorm:"primaryKey;autoIncrement:false"`
	ID         string `gorm:"primaryKey"`
	ActorID    string
	ActorRole  seckill.Role
	APIKeyID   string `gorm:"column:api_key_id"`
	APIKeyName string `gorm:"column:api_key_name"`
	Action     salechange.Action
	Was        map[string]any `gorm:"serializer:json"`
	Became     map[string]any `gorm:"serializer:json"`
	MadeAt     int64
}

func (auditRow) TableName() string { return "sale_audit" }

// AuditTrail lists at most limit entries that a filter selects, newest first, with ids below before
// (empty: from the newest). A merchant's entries are those of the merchant's sales, webhooks, API
// keys and actions. An index serves each of these statements; one for all of them would read the
// whole table for every merchant.
func (s *Store) AuditTrail(
	ctx context.Context, f salechange.AuditFilter, before string, limit int,
) ([]salechange.AuditEntry, error) {
	read := func(index string, where ...any) ([]salechange.AuditEntry, error) {
		q := byIndex(s.read(ctx), "sale_audit", index)
		if f.GoodsID != 0 {
			q = q.Where("goods_id = ?", f.GoodsID)
		}
		if f.Action != "" {
			q = q.Where("action = ?", f.Action)
		}
		if len(where) > 0 {
			q = q.Where(where[0], where[1:]...)
		}
		return list("list the audit log", newest(q, "id", before, limit), auditRow.entry)
	}
	if f.MerchantID == "" {
		switch {
		case f.GoodsID != 0:
			return read("PRIMARY")
		case f.Action != "":
			return read("sale_audit_by_action")
		default:
			return read("sale_audit_by_id")
		}
	}
	all, err := read("sale_audit_by_actor", "actor_id = ? AND actor_role = ?", f.MerchantID,
		seckill.Merchant)
	if err != nil {
		return nil, err
	}
	// Where the merchant's actions fill the page, older entries are not on it. Without that bound
	// the page of a merchant with many sales would read all their entries.
	above := ""
	if len(all) == limit && limit > 0 {
		above = all[limit-1].ID
	}
	parts, err := s.partsOfMerchant(ctx, f, above)
	if err != nil {
		return nil, err
	}
	for _, part := range parts {
		found, err := read("PRIMARY", part...)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	slices.SortFunc(all, func(x, y salechange.AuditEntry) int {
		return strings.Compare(y.ID, x.ID)
	})
	all = slices.CompactFunc(all, func(x, y salechange.AuditEntry) bool { return x.ID == y.ID })
	return all[:min(limit, len(all))], nil
}

// partsOfMerchant returns conditions that select, by the primary key, the entries with ids above
// one that are of a merchant's sales, webhooks or API keys.
func (s *Store) partsOfMerchant(
	ctx context.Context, f salechange.AuditFilter, above string,
) (parts [][]any, err error) {
	// The entry of a webhook or an API key names its owner as the column's serializer writes it.
	owner, err := json.Marshal(f.MerchantID)
	if err != nil {
		return nil, err
	}
	q := s.read(ctx).Model(&saleRow{}).Where("merchant_id = ?", f.MerchantID)
	if f.GoodsID != 0 {
		q = q.Where("goods_id = ?", f.GoodsID)
	}
	var goods []int64
	if err := q.Pluck("goods_id", &goods).Error; err != nil {
		return nil, wrapError("list a merchant's sales", err)
	}
	for part := range slices.Chunk(goods, chunkOf(s.db)) {
		parts = append(parts, []any{"goods_id IN ? AND id > ?", part, above})
	}
	return append(parts, []any{
		"goods_id = 0 AND id > ? AND INSTR(became, ?) > 0", above,
		`"ownerId":` + string(owner),
	}), nil
}

func (r auditRow) entry() salechange.AuditEntry {
	return salechange.AuditEntry{
		ID: r.ID, GoodsID: r.GoodsID, ActorID: r.ActorID, Role: r.ActorRole, Action: r.Action,
		APIKey: seckill.APIKey{ID: r.APIKeyID, Name: r.APIKeyName},
		Was:    r.Was, Became: r.Became, At: timeOf(&r.MadeAt),
	}
}

// audit records a change of a sale by the context's actor in the caller's transaction. The zero row
// represents a sale that does not exist before or after the change.
func audit(tx *gorm.DB, action salechange.Action, was, became saleRow, now time.Time) error {
	e := newAuditEntry(tx, action, max(was.GoodsID, became.GoodsID), now)
	e.Was, e.Became = audited(was), audited(became)
	dropEqual(e.Was, e.Became)
	return tx.Create(e).Error
}

// newAuditEntry returns an entry of the audit log by the context's actor, without fields.
func newAuditEntry(
	tx *gorm.DB, action salechange.Action, goodsID int64, now time.Time,
) *auditRow {
	by := seckill.ActorOf(tx.Statement.Context)
	return &auditRow{
		GoodsID: goodsID, ID: seckill.NewRowID(now).String(), ActorID: by.ID, ActorRole: by.Role,
		APIKeyID: by.APIKey.ID, APIKeyName: by.APIKey.Name, Action: action,
		Was: map[string]any{}, Became: map[string]any{}, MadeAt: now.UnixMilli(),
	}
}

// AuditLimiter records an operator's change of a limiter by the context's actor. The limiter itself
// is in Redis, so no transaction holds both. goodsID is 0 for a limiter of no sale.
func (s *Store) AuditLimiter(
	ctx context.Context, action salechange.Action, goodsID int64, was, became map[string]any,
	now time.Time,
) error {
	tx := s.read(ctx)
	e := newAuditEntry(tx, action, goodsID, now)
	e.Was, e.Became = was, became
	return wrapError("record a change of a limiter", tx.Create(e).Error)
}

// dropEqual deletes the fields with the same value before and after a change. For what does not
// exist on one side, that side has no fields, and the other one keeps all of its own.
func dropEqual(was, became map[string]any) {
	for name, value := range became {
		if reflect.DeepEqual(was[name], value) {
			delete(was, name)
			delete(became, name)
		}
	}
}

// audited returns the fields that merchants set, by their API names; none of the zero row. Stock
// sold to buyers is recorded by orders instead.
func audited(r saleRow) map[string]any {
	if r.GoodsID == 0 {
		return map[string]any{}
	}
	return map[string]any{
		"title": r.Title, "price": r.Price, "stock": r.Total, "perBuyerLimit": r.PerBuyerLimit,
		"startAt": event.FormatTime(timeOf(&r.StartAt)), "endAt": event.FormatTime(timeOf(&r.EndAt)),
		"rate.algorithm": r.RateAlgorithm, "rate.permitsPerSecond": r.PermitsPerSecond,
		"rate.maxBurstSeconds": r.MaxBurstSeconds, "rate.maxWaitMillis": r.MaxWaitMillis,
		"admission": r.Admission, "accessCode": r.AccessCode,
		"status": r.Status, "description": r.Description, "imageUrl": r.ImageURL,
		"externalId": text(r.ExternalID), "metadata": text(r.Metadata), "currency": r.Currency,
	}
}
