package sqlstore

import (
	"maps"
	"net/url"
	"time"

	"gorm.io/gorm"

	"flashsale.dev/seckill/internal/seckill/salechange"
)

// auditChange records a change of a webhook. A new secret has an entry of its own, because it is
// what a search after a leak is for.
func auditChange(tx *gorm.DB, was, became endpointRow, now time.Time) error {
	if was.Secret != became.Secret {
		entry := endpointEntry(tx, salechange.ActRotateSecret, became, now)
		if err := tx.Create(entry).Error; err != nil {
			return err
		}
	}
	return auditEndpoint(tx, salechange.ActChangeWebhook, was, became, now)
}

// auditEndpoint records a change with the fields that differ, if there are any. The zero row
// represents a webhook that does not exist before or after the change.
func auditEndpoint(
	tx *gorm.DB, action salechange.Action, was, became endpointRow, now time.Time,
) error {
	from, to := auditedEndpoint(was), auditedEndpoint(became)
	dropEqual(from, to)
	if len(from)+len(to) == 0 {
		return nil
	}
	row := became
	if row.ID == "" {
		row = was
	}
	entry := endpointEntry(tx, action, row, now)
	entry.Was = from
	maps.Copy(entry.Became, to)
	return tx.Create(entry).Error
}

// auditedEndpoint returns the fields that owners set, by their API names; none of the zero row. Of
// the URL it keeps the scheme and the host, because the rest may contain a token.
func auditedEndpoint(r endpointRow) map[string]any {
	if r.ID == "" {
		return map[string]any{}
	}
	site := ""
	if u, err := url.Parse(r.URL); err == nil && u.Host != "" {
		site = u.Scheme + "://" + u.Host
	}
	return map[string]any{
		"url": site, "eventTypes": listOf(r.EventTypes), "maxBatch": r.MaxBatch,
		"maxPerSecond": r.MaxPerSecond, "enabled": r.Enabled,
	}
}

// endpointEntry is an entry of the audit log about a webhook, by the context's actor.
func endpointEntry(
	tx *gorm.DB, action salechange.Action, row endpointRow, now time.Time,
) *auditRow {
	e := newAuditEntry(tx, action, 0, now)
	e.Became["webhookId"] = row.ID
	if !row.AllSales { // an operator may have the id of a merchant, who must not see the entry
		e.Became["ownerId"] = row.OwnerID
	}
	return e
}
