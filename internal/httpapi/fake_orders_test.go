package httpapi_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/payment"
	"flashsale.dev/seckill/internal/order/purchase"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/reservation"
)

func (f *fake) LimitPath(ctx context.Context, _ seckill.View, _ seckill.Actor) error {
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
	f.mu.Lock()
	defer f.mu.Unlock()
	sn, known := f.paths[pathKey(p.GoodsID, p.Buyer.ID, p.Path)]
	switch {
	case !known:
		return "", reservation.Verdict{Code: reservation.WrongPath}.Err()
	case sn != "":
		return sn, nil
	case p.Quantity > v.Available:
		return "", reservation.Verdict{Code: reservation.TooFew, Available: v.Available}.Err()
	}
	sn = fmt.Sprintf("order-%d", len(f.orders)+1)
	f.paths[pathKey(p.GoodsID, p.Buyer.ID, p.Path)] = sn
	f.orders[sn] = order.Order{
		OrderLine: reservation.OrderLine{OrderSn: sn, BuyerID: p.Buyer.ID, Quantity: p.Quantity, Name: p.Buyer.Name, Phone: p.Buyer.Phone},
		GoodsID:   p.GoodsID, Status: order.Created, Amount: v.Price * p.Quantity, CreatedAt: f.now, PayBy: f.now.Add(time.Hour),
	}
	f.writes++
	return sn, nil
}

func (f *fake) find(by seckill.Actor, sn string) (order.Order, error) {
	o, ok := f.orders[sn]
	if !ok {
		return o, seckill.NewError(seckill.NotFound, "there is no such order")
	}
	if o.BuyerID != by.ID {
		return o, seckill.NewError(seckill.Forbidden, "this is somebody else's order")
	}
	return o, nil
}

func (f *fake) Find(_ context.Context, by seckill.Actor, sn string) (order.Order, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.find(by, sn)
}

func (f *fake) some(before string, limit int, want func(order.Order) bool) []order.Order {
	var out []order.Order
	for _, sn := range slices.Backward(slices.Sorted(maps.Keys(f.orders))) {
		if (before == "" || sn < before) && want(f.orders[sn]) && len(out) < limit {
			out = append(out, f.orders[sn])
		}
	}
	return out
}

func (f *fake) Mine(_ context.Context, by seckill.Actor, before string, limit int) ([]order.Order, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.some(before, limit, func(o order.Order) bool { return o.BuyerID == by.ID }), nil
}

func (f *fake) OfGoods(_ context.Context, by seckill.Actor, id int64, st order.Status, before string, limit int) ([]order.Order, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, err := f.sale(by, id); err != nil {
		return nil, err
	}
	f.reads++
	return f.some(before, limit, func(o order.Order) bool { return o.GoodsID == id && (st == "" || o.Status == st) }), nil
}

func (f *fake) end(by seckill.Actor, sn string, st order.Status) (order.Order, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	o, err := f.find(by, sn)
	if err != nil {
		return o, err
	}
	if o.Status != order.Created && o.Status != st {
		return o, seckill.NewError(seckill.Conflict, "the order is %s", o.Status)
	}
	o.Status = st
	f.orders[sn] = o
	f.writes++
	return o, nil
}

func (f *fake) Pay(_ context.Context, by seckill.Actor, sn string) (order.Order, error) {
	return f.end(by, sn, order.Paid)
}

func (f *fake) Receive(_ context.Context, id, sn string, amount int64) (payment.Receipt, error) {
	f.mu.Lock()
	o, ok := f.orders[sn]
	f.mu.Unlock()
	if !ok {
		return payment.Receipt{}, seckill.NewError(seckill.NotFound, "there is no such order")
	}
	if amount != o.Amount {
		return payment.Receipt{}, seckill.NewError(seckill.Conflict, "the amount is not the order's")
	}
	r := payment.Receipt{Payment: payment.Payment{ID: id, OrderSn: sn, Amount: amount}, State: payment.Kept}
	o, err := f.end(seckill.Actor{ID: o.BuyerID}, sn, order.Paid)
	if err != nil {
		o.Status, r.State, r.Reason = order.Cancelled, payment.Refunding, payment.RefundCancelled
	}
	r.Order = o
	return r, nil
}

func (f *fake) Cancel(_ context.Context, by seckill.Actor, sn string) (order.Order, error) {
	return f.end(by, sn, order.Cancelled)
}
