// Package paymentprovider is what stands between the orders and whoever takes the money: the check that a callback is the
// provider's own word, and the built-in test provider.
//
// A callback carries a timestamp and an HMAC-SHA256 over that timestamp, a full stop and the body as it was sent. It is
// believed within Tolerance of its timestamp. Within that time it can be sent again by whoever overheard it: what makes
// that harmless is the provider's own number of the payment, which counts once (order.Service).
//
// A real provider is a type that implements payment.Provider; nothing else changes.
//
// Safe for concurrent use. It imports order and seckill.
package paymentprovider
