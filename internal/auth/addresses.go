package auth

// Addresses encrypts the addresses of orders as Phones encrypts phone numbers, with the same keys.
// An address is bound to its order and its buyer: it does not decrypt for another.
type Addresses struct{ Keys *Phones }

// Seal encrypts the address of an order.
func (a Addresses) Seal(buyerID, orderSn, text string) string {
	return a.Keys.sealText(text, orderData(buyerID, orderSn))
}

// Open decrypts a stored address. The error is errSealed.
func (a Addresses) Open(buyerID, orderSn, sealed string) (string, error) {
	return a.Keys.openText(sealed, orderData(buyerID, orderSn))
}

// orderData differs from the additional data of any phone number, which is 8 bytes or begins with a
// byte of 255. No order number has a space.
func orderData(buyerID, orderSn string) []byte {
	return []byte("address of order " + orderSn + " " + buyerID)
}
