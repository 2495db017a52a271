package paymentprovider

import (
	"context"
	"errors"
	"strings"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/payment"
)

// Test is the built-in provider. It moves no money, and accepts charges and refunds at once. Its
// number of a payment is the order's.
type Test struct{}

var _ payment.Provider = Test{}

// Charge returns the only payment of an order, so that it charges once.
func (Test) Charge(_ context.Context, o order.Order) (payment.Payment, error) {
	return payment.Payment{
		ID: o.OrderSn, GoodsID: o.GoodsID, OrderSn: o.OrderSn, Amount: o.Amount,
	}, nil
}

// Refund succeeds at once, except for a payment of Stripe, whose ids begin with pi_. A node that
// lacks the setting of the others would record as returned what a buyer never gets.
func (Test) Refund(_ context.Context, p payment.Payment) error {
	if strings.HasPrefix(p.ID, "pi_") {
		return errors.New("the payment is Stripe's: set SECKILL_PAYMENT_PROVIDER=stripe on every node")
	}
	return nil
}
