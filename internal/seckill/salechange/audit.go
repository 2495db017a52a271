package salechange

import (
	"time"

	"flashsale.dev/seckill/internal/seckill"
)

// Action is a kind of change that the audit log records. It has at most 16 characters.
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
	// Showed the data of all buyers of a sale, in a file. The entry has no order's number.
	ActExportOrders Action = "exportOrders"
	// An operator's decision about a refund that failed. The entry has the order's number too.
	ActRetryRefund  Action = "retryRefund"
	ActSettleRefund Action = "settleRefund" // the money was returned in another way
	// Changes of a webhook. The entry has goods id 0, the webhook's id and its owner's.
	ActCreateWebhook Action = "createWebhook"
	ActChangeWebhook Action = "changeWebhook"
	ActRotateSecret  Action = "rotateSecret"
	ActDeleteWebhook Action = "deleteWebhook"
	ActRetryDelivery Action = "retryDelivery"
	// An API key, with goods id 0. The entry has the key's id and name, and its owner's id.
	ActCreateAPIKey Action = "createApiKey"
	ActRevokeAPIKey Action = "revokeApiKey"
	// An operator's limit. The entry has the rule's name and the key, and the goods id of a sale's
	// limit.
	ActSetLimiter    Action = "setLimiter"
	ActDeleteLimiter Action = "deleteLimiter"
	// An operator's decision about a dead letter. The entry has its id and the order's number.
	ActRequeueOrder Action = "requeueOrder"
	ActDiscardOrder Action = "discardOrder"
)

// Actions lists all actions.
func Actions() []Action {
	return []Action{
		ActCreate, ActChange, ActExpose, ActClose, ActDelete, ActCancelOrder, ActRefundOrder,
		ActShipOrder, ActRevealOrder, ActExportOrders, ActRetryRefund, ActSettleRefund,
		ActCreateWebhook, ActChangeWebhook, ActRotateSecret, ActDeleteWebhook, ActRetryDelivery,
		ActCreateAPIKey, ActRevokeAPIKey, ActSetLimiter, ActDeleteLimiter, ActRequeueOrder,
		ActDiscardOrder,
	}
}

// AuditFilter selects entries of the audit log. A zero field selects all.
type AuditFilter struct {
	// MerchantID selects the entries of a merchant: of the merchant's sales, webhooks and API
	// keys, whoever made the change, and of everything that the merchant did.
	MerchantID string
	GoodsID    int64
	Action     Action
}

// AuditEntry is one recorded change: its actor, its time, and the fields before and after.
type AuditEntry struct {
	ID          string // a UUIDv7
	GoodsID     int64  // 0: not of a sale
	ActorID     string
	Role        seckill.Role
	APIKey      seckill.APIKey // zero: a person, or the system
	Action      Action
	Was, Became map[string]any // the fields that differ, by their API names
	At          time.Time
}
