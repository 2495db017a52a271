package paymentprovider

import (
	"context"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/payment"
)

// Test is the built-in provider: it takes no money, says at once that it did, and gives it back as readily. Its
// number of a payment is the order's.
type Test struct{}

var _ payment.Provider = Test{}

// Charge gives the one payment that there is of an order.
func (Test) Charge(_ context.Context, o order.Order) (payment.Payment, error) {
	return payment.Payment{ID: o.OrderSn, GoodsID: o.GoodsID, OrderSn: o.OrderSn, Amount: o.Amount}, nil
}

// Refund gives it back.
func (Test) Refund(context.Context, payment.Payment) error { return nil }
