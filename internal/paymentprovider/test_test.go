package paymentprovider

import (
	"testing"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/order/payment"
)

// TestRefund_LeavesStripesPayments checks that a node without the setting of the others does not
// record a payment as refunded that only they can refund.
func TestRefund_LeavesStripesPayments(t *testing.T) {
	for _, id := range []string{"1EEXyA6kX5DImvF3RmLG3ut70d5BWO7olDv", "p-1", "pay_7f3a91"} {
		require.NoError(t, Test{}.Refund(t.Context(), payment.Payment{ID: id, Amount: 1}))
	}
	err := Test{}.Refund(t.Context(), payment.Payment{ID: "pi_3NirD82eZvKYlo2C", Amount: 1})
	require.ErrorContains(t, err, "SECKILL_PAYMENT_PROVIDER=stripe")
}
