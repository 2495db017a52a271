package sqlstore

import (
	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/seckill"
)

// What the house asks of its truth.
var (
	_ seckill.Truth      = (*Store)(nil)
	_ seckill.AuditLog   = (*Store)(nil)
	_ seckill.Epochs     = (*Store)(nil)
	_ order.AuditStore   = (*Store)(nil)
	_ order.ChangeStore  = (*Store)(nil)
	_ order.BatchStore   = (*Store)(nil)
	_ order.Counter      = (*Store)(nil)
	_ order.StatusReader = (*Store)(nil)
	_ order.EpochStore   = (*Store)(nil)
	_ order.ExpiryStore  = (*Store)(nil)
	_ order.LetterStore  = (*Store)(nil)
	_ order.LiveStore    = (*Store)(nil)
	_ order.MoveStore    = (*Store)(nil)
	_ order.PaymentStore = (*Store)(nil)
	_ order.RetireStore  = (*Store)(nil)
	_ order.Records      = (*Store)(nil)
	_ order.RefundStore  = (*Store)(nil)
	_ order.SurveyStore  = (*Store)(nil)
)
