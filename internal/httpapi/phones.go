package httpapi

import (
	"time"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/shipping"
	"flashsale.dev/seckill/internal/seckill"
)

// sealPhone encrypts a buyer's phone number, so that stores and queues hold no readable number.
func (a *api) sealPhone(buyer seckill.Actor) seckill.Actor {
	buyer.Phone = a.Phones.Seal(buyer.ID, buyer.Phone)
	return buyer
}

// openPhone returns an order's phone number to show. Where no key decrypts it, it logs the error
// and returns "".
func (a *api) openPhone(o order.Order) string {
	phone, err := a.Phones.Open(o.BuyerID, o.Phone)
	a.logSealed(o, err)
	return phone
}

// openAddress returns an order's address to show; nil if it has none. Where no key decrypts it, it
// logs the error and returns nil.
func (a *api) openAddress(o order.Order) *shipping.Address {
	address, err := a.Shipping.AddressOf(o)
	a.logSealed(o, err)
	return address
}

func (a *api) logSealed(o order.Order, err error) {
	if err == nil {
		return
	}
	if suppressed, ok := a.logThrottle.allow(time.Now()); ok {
		a.Log.Warn("a buyer's data cannot be decrypted",
			"order_sn", o.OrderSn, "err", err, "not_logged", suppressed)
	}
}
