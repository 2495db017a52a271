package httpapi

import (
	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/seckill"
)

// sealed is a buyer as the rest of the house may know them: what is behind this door keeps the phone number sealed.
func (a *api) sealPhone(buyer seckill.Actor) seckill.Actor {
	if a.Phones != nil {
		buyer.Phone = a.Phones.Seal(buyer.ID, buyer.Phone)
	}
	return buyer
}

// phoneOf is an order's phone number, to be shown; "" where no key opens it, which is told to the log.
func (a *api) openPhone(o order.Order) string {
	if a.Phones == nil {
		return o.Phone
	}
	phone, err := a.Phones.Open(o.BuyerID, o.Phone)
	if err != nil {
		if left, ok := a.logThrottle.allow(a.now()); ok {
			a.Log.Warn("a phone number is not shown", "order_sn", o.OrderSn, "err", err, "not_logged", left)
		}
	}
	return phone
}
