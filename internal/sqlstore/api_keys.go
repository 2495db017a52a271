package sqlstore

import (
	"context"
	"encoding/hex"
	"errors"
	"strings"
	"time"

	"gorm.io/gorm"

	"flashsale.dev/seckill/internal/apikey"
	"flashsale.dev/seckill/internal/seckill/salechange"
)

// apiKeyRow is a key without its secret.
type apiKeyRow struct {
	ID         string `gorm:"primaryKey"`
	MerchantID string
	Name       string
	Scopes     string // separated by spaces
	Hash       string // hex
	CreatedBy  string
	Created    int64 `gorm:"column:created_at"`
	LastUsedAt *int64
	RevokedBy  string
	RevokedAt  *int64
}

func (apiKeyRow) TableName() string { return "api_keys" }

// key converts the row. A hash that is not hex matches no secret.
func (r apiKeyRow) key() apikey.Key {
	hash, _ := hex.DecodeString(r.Hash)
	k := apikey.Key{
		ID: r.ID, MerchantID: r.MerchantID, Name: r.Name, Hash: hash, CreatedBy: r.CreatedBy,
		CreatedAt: timeOf(&r.Created), LastUsedAt: timeOf(r.LastUsedAt),
		RevokedBy: r.RevokedBy, RevokedAt: timeOf(r.RevokedAt),
	}
	for scope := range strings.FieldsSeq(r.Scopes) {
		k.Scopes = append(k.Scopes, apikey.Scope(scope))
	}
	return k
}

// AddAPIKey stores a new key, in one transaction with its entry in the audit log.
func (s *Store) AddAPIKey(ctx context.Context, k apikey.Key) error {
	scopes := mapSlice(k.Scopes, func(scope apikey.Scope) string { return string(scope) })
	row := apiKeyRow{
		ID: k.ID, MerchantID: k.MerchantID, Name: k.Name, Scopes: strings.Join(scopes, " "),
		Hash: hex.EncodeToString(k.Hash), CreatedBy: k.CreatedBy, Created: k.CreatedAt.UnixMilli(),
	}
	return s.inTx(ctx, "add an API key", func(tx *gorm.DB) error {
		if err := tx.Create(&row).Error; err != nil {
			return err
		}
		e := apiKeyEntry(tx, salechange.ActCreateAPIKey, row, k.CreatedAt)
		e.Became["scopes"] = scopes
		return tx.Create(e).Error
	})
}

// apiKeyEntry is an entry of the audit log about an API key, by the context's actor.
func apiKeyEntry(
	tx *gorm.DB, action salechange.Action, row apiKeyRow, now time.Time,
) *auditRow {
	e := newAuditEntry(tx, action, 0, now)
	e.Became["apiKeyId"], e.Became["ownerId"], e.Became["name"] = row.ID, row.MerchantID, row.Name
	return e
}

// APIKeys lists at most limit keys, newest first, with ids below before (empty: from the newest),
// of one merchant or (empty) of all.
func (s *Store) APIKeys(
	ctx context.Context, merchantID, before string, limit int,
) ([]apikey.Key, error) {
	q := s.read(ctx)
	if merchantID != "" {
		q = q.Where("merchant_id = ?", merchantID)
	}
	return list("list API keys", newest(q, "id", before, limit), apiKeyRow.key)
}

// APIKeysByID returns those of the given keys that exist, in any order. It reads the primary,
// because a replica may not have a revocation yet.
func (s *Store) APIKeysByID(ctx context.Context, ids []string) ([]apikey.Key, error) {
	return list("read API keys", s.read(ctx).Where("id IN ?", ids), apiKeyRow.key)
}

// CountAPIKeys returns the number of a merchant's valid keys.
func (s *Store) CountAPIKeys(ctx context.Context, merchantID string) (int, error) {
	n, err := count[apiKeyRow]("count API keys",
		s.read(ctx).Where("merchant_id = ? AND revoked_at IS NULL", merchantID))
	return int(n), err
}

// UseAPIKeys sets the time of the last use of keys, except for those with a later time.
func (s *Store) UseAPIKeys(ctx context.Context, ids []string, at time.Time) error {
	err := s.read(ctx).Exec(`UPDATE api_keys SET last_used_at = ?
		WHERE id IN ? AND (last_used_at IS NULL OR last_used_at < ?)`,
		at.UnixMilli(), ids, at.UnixMilli()).Error
	return wrapError("write the use of API keys", err)
}

var errNoAPIKey = errors.New("there is no such valid API key")

// RevokeAPIKey revokes a key, in one transaction with its entry in the audit log. A key that is
// revoked keeps its time and its revoker.
func (s *Store) RevokeAPIKey(ctx context.Context, id, by string, now time.Time) error {
	return s.inTx(ctx, "revoke an API key", func(tx *gorm.DB) error {
		row, err := take[apiKeyRow](locked(tx).Where("id = ? AND revoked_at IS NULL", id),
			errNoAPIKey)
		if errors.Is(err, errNoAPIKey) {
			return nil
		}
		if err != nil {
			return err
		}
		err = updateOne(tx.Exec("UPDATE api_keys SET revoked_at = ?, revoked_by = ? WHERE id = ?",
			now.UnixMilli(), by, id))
		if err != nil {
			return err
		}
		return tx.Create(apiKeyEntry(tx, salechange.ActRevokeAPIKey, row, now)).Error
	})
}
