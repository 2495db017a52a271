package paymentprovider

import (
	"context"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/payment"
)

// Test is the built-in provider. It moves no money and accepts every charge and refund at once. Its
// number of a payment is the order's.
type Test struct{}

var _ payment.Provider = Test{}

// Charge returns the only payment of an order, so that it charges once.
func (Test) Charge(_ context.Context, o order.Order) (payment.Payment, error) {
	return payment.Payment{
		ID: o.OrderSn, GoodsID: o.GoodsID, OrderSn: o.OrderSn, Amount: o.Amount,
	}, nil
}

// Refund always succeeds.
func (Test) Refund(context.Context, payment.Payment) error { return nil }
