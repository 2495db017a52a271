package app

import (
	"fmt"

	"flashsale.dev/seckill/internal/config"
	"flashsale.dev/seckill/internal/order/payment"
	"flashsale.dev/seckill/internal/paymentprovider"
	"flashsale.dev/seckill/internal/paymentprovider/stripepay"
)

// NewProvider returns the payment provider that the settings name. It contacts no server. Another
// provider is another case here.
func NewProvider(cfg config.Config) (payment.Provider, error) {
	switch cfg.Payment.Provider {
	case "stripe":
		provider, err := stripepay.New(stripepay.Options{
			Key: cfg.Payment.StripeKey.Reveal(), WebhookSecret: cfg.Payment.WebhookSecret.Reveal(),
			URL: cfg.Payment.StripeURL, PublicURL: cfg.Payment.PublicURL,
			Currency: cfg.HTTP.Currency,
		})
		if err != nil {
			return nil, fmt.Errorf("SECKILL_PAYMENT_PROVIDER=stripe: %w", err)
		}
		return provider, nil
	case "test", "": // seckillctl, which moves no money, names none
		return paymentprovider.Test{}, nil
	default: // not the provider that takes no money: buyers would get the goods for nothing
		return nil, fmt.Errorf("SECKILL_PAYMENT_PROVIDER=%s: has no case in app.NewProvider",
			cfg.Payment.Provider)
	}
}
