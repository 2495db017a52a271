package httpapi

import (
	"context"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/shipping"
	"flashsale.dev/seckill/internal/seckill"
)

// sealContact encrypts a buyer's phone number and email address into Phone, so that stores and
// queues hold neither in a readable form.
func (a *api) sealContact(buyer seckill.Actor) seckill.Actor {
	buyer.Phone = a.Phones.Seal(buyer.ID, buyer.Phone, buyer.Email)
	return buyer
}

// openContact returns an order's phone number and email address to show. Where no key decrypts
// them, it logs the error and returns "".
func (a *api) openContact(o order.Order) (phone, email string) {
	phone, email, err := a.Phones.Open(o.BuyerID, o.Phone)
	a.logSealed(o, err)
	return phone, email
}

// openAddress returns an order's address to show; nil if it has none. Where no key decrypts it, it
// logs the error and returns nil.
func (a *api) openAddress(o order.Order) *shipping.Address {
	address, err := a.Shipping.AddressOf(o)
	a.logSealed(o, err)
	return address
}

func (a *api) logSealed(o order.Order, err error) {
	if err != nil {
		a.warn(context.Background(), "a buyer's data cannot be decrypted",
			"order_sn", o.OrderSn, "err", err)
	}
}
