package auth

// WebhookSecrets encrypts the signing secrets of webhooks as Phones encrypts phone numbers, with
// the same keys. A secret is bound to its endpoint: it does not decrypt for another, nor as a phone
// number.
type WebhookSecrets struct{ Keys *Phones }

// Seal encrypts an endpoint's secret.
func (w WebhookSecrets) Seal(endpointID, secret string) string {
	return w.Keys.sealText(secret, endpointData(endpointID))
}

// Open decrypts a stored secret. The error is errSealed.
func (w WebhookSecrets) Open(endpointID, kept string) (string, error) {
	return w.Keys.openText(kept, endpointData(endpointID))
}

// endpointData differs from the additional data of addresses and phone numbers. An address begins
// with another text. A phone number is 8 bytes or begins with a byte of 255.
func endpointData(endpointID string) []byte { return []byte("webhook endpoint " + endpointID) }
