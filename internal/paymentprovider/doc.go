// Package paymentprovider verifies callbacks of the payment provider, and holds the built-in test
// provider.
//
// A callback has a timestamp and an HMAC-SHA256 over timestamp, full stop and body. It is valid
// within tolerance of its timestamp. An attacker could repeat a recorded callback in that time. The
// repetition is harmless, because the provider's number of a payment counts once.
//
// A real provider is a type that implements payment.Provider. All types are safe for concurrent
// use.
package paymentprovider
