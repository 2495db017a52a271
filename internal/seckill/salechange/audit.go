package salechange

import (
	"time"

	"flashsale.dev/seckill/internal/seckill"
)

// Action is a kind of change of a sale.
type Action string

// The actions of the audit log.
const (
	ActCreate Action = "create"
	ActChange Action = "change"
	ActExpose Action = "expose"
	ActClose  Action = "close"
	ActDelete Action = "delete"
	// Changes of one order by the merchant or an operator. The entry has the order's number.
	ActCancelOrder Action = "cancelOrder"
	ActRefundOrder Action = "refundOrder"
	ActShipOrder   Action = "shipOrder"
	ActRevealOrder Action = "revealOrder" // showed the buyer's data
)

// AuditEntry is one change of a sale: its actor, its time, and the fields before and after.
type AuditEntry struct {
	ID          string // a UUIDv7
	GoodsID     int64
	ActorID     string
	Role        seckill.Role
	APIKey      seckill.APIKey // zero: a person, or the system
	Action      Action
	Was, Became map[string]any // the fields that differ, by their API names
	At          time.Time
}
