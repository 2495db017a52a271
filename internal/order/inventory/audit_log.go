package inventory

import (
	"context"

	"flashsale.dev/seckill/internal/seckill/salechange"
)

// AuditLog is what MySQL keeps of changes.
type AuditLog interface {
	// AuditOf lists a sale's changes, newest first, below an id ("": from the top).
	AuditOf(ctx context.Context, goodsID int64, before string, limit int) ([]salechange.AuditEntry, error)
}
