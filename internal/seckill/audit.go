package seckill

import (
	"context"
	"encoding/json"
	"time"
)

// Action is what was done to a sale.
type Action string

// The actions of the audit log.
const (
	ActCreate Action = "create"
	ActChange Action = "change"
	ActExpose Action = "expose"
	ActClose  Action = "close"
	ActDelete Action = "delete"
)

// AuditEntry is one change of a sale: who, when, from what to what.
type AuditEntry struct {
	ID          string // a UUIDv7
	GoodsID     int64
	ActorID     int64
	Role        Role
	Action      Action
	Was, Became json.RawMessage // JSON objects of the fields that differ
	At          time.Time
}

// AuditLog is what MySQL keeps of changes.
type AuditLog interface {
	// AuditOf lists a sale's changes, newest first, below an id ("": from the top).
	AuditOf(ctx context.Context, goodsID int64, before string, limit int) ([]AuditEntry, error)
}
