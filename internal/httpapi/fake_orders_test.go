package httpapi_test

import (
	"context"
	"fmt"
	"time"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/payment"
	"flashsale.dev/seckill/internal/order/purchase"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/reservation"
)

func (f *fake) LimitPath(ctx context.Context, _ seckill.View, _ actor) error {
	if f.wait > 0 {
		select {
		case <-time.After(f.wait):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return f.limit
}

func (f *fake) Place(ctx context.Context, p purchase.Request) (string, error) {
	if f.inPlace != nil {
		f.inPlace()
	}
	v, err := f.Sale(ctx, p.GoodsID)
	if err != nil {
		return "", err
	}
	defer f.lock()()
	path := pathKey(p.GoodsID, p.Buyer.ID, p.Path)
	sn, known := f.paths[path]
	switch {
	case !known:
		return "", reservation.Verdict{Code: reservation.WrongPath}.Err()
	case sn != "":
		return sn, nil
	case p.Quantity > v.Available:
		return "", reservation.Verdict{Code: reservation.TooFew, Available: v.Available}.Err()
	}
	sn = fmt.Sprintf("order-%d", len(f.orders)+1)
	f.paths[path] = sn
	f.orders[sn] = newOrder(sn, p.GoodsID, p.Buyer, p.Quantity, v.Price, f.now)
	f.writes++
	return sn, nil
}

// newOrder returns an order with a payment period of one hour.
func newOrder(
	sn string, goods int64, buyer actor, quantity, price int64, now time.Time,
) order.Order {
	return order.Order{
		OrderLine: reservation.OrderLine{
			OrderSn: sn, BuyerID: buyer.ID, Quantity: quantity, Name: buyer.Name,
			Phone: buyer.Phone,
		},
		GoodsID: goods, Status: order.Created, Amount: price * quantity,
		CreatedAt: now, PayBy: now.Add(time.Hour),
	}
}

func (f *fake) find(by actor, sn string) (order.Order, error) {
	o, ok := f.orders[sn]
	if !ok {
		return o, seckill.NewError(seckill.NotFound, "there is no such order")
	}
	if o.BuyerID != by.ID {
		return o, seckill.NewError(seckill.Forbidden, "this is somebody else's order")
	}
	return o, nil
}

func (f *fake) Find(_ context.Context, by actor, sn string) (order.Order, error) {
	defer f.lock()()
	return f.find(by, sn)
}

func (f *fake) Mine(_ context.Context, by actor, before string, limit int) ([]order.Order, error) {
	defer f.lock()()
	own := func(o order.Order) bool { return o.BuyerID == by.ID }
	return newest(f.orders, before, limit, own), nil
}

func (f *fake) OfGoods(
	_ context.Context, by actor, id int64, status order.Status, before string, limit int,
) ([]order.Order, error) {
	defer f.lock()()
	if _, err := f.sale(by, id); err != nil {
		return nil, err
	}
	f.reads++
	return newest(f.orders, before, limit, func(o order.Order) bool {
		return o.GoodsID == id && (status == "" || o.Status == status)
	}), nil
}

func (f *fake) end(by actor, sn string, status order.Status) (order.Order, error) {
	defer f.lock()()
	o, err := f.find(by, sn)
	if err != nil {
		return o, err
	}
	if o.Status != order.Created && o.Status != status {
		return o, seckill.NewError(seckill.Conflict, "the order is %s", o.Status)
	}
	o.Status = status
	f.orders[sn] = o
	f.writes++
	return o, nil
}

func (f *fake) Pay(_ context.Context, by actor, sn string) (order.Order, error) {
	return f.end(by, sn, order.Paid)
}

func (f *fake) Cancel(_ context.Context, by actor, sn string) (order.Order, error) {
	return f.end(by, sn, order.Cancelled)
}

func (f *fake) Receive(_ context.Context, id, sn string, amount int64) (payment.Receipt, error) {
	unlock := f.lock()
	o, ok := f.orders[sn]
	unlock()
	if !ok {
		return payment.Receipt{}, seckill.NewError(seckill.NotFound, "there is no such order")
	}
	if amount != o.Amount {
		return payment.Receipt{}, seckill.NewError(seckill.Conflict,
			"the amount is not the order's")
	}
	p := payment.Payment{ID: id, OrderSn: sn, Amount: amount}
	if o, err := f.end(actor{ID: o.BuyerID}, sn, order.Paid); err == nil {
		return payment.Receipt{Payment: p, State: payment.Kept, Order: o}, nil
	}
	o.Status = order.Cancelled
	return payment.Receipt{
		Payment: p, State: payment.Refunding, Reason: payment.RefundCancelled, Order: o,
	}, nil
}
