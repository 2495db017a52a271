package query

import (
	"context"
	"errors"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/ordersn"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/reservation"
)

// OrderStore is what MySQL knows of orders.
type OrderStore interface {
	// Order reads one order; ErrNoSuchOrder where there is no row.
	Order(ctx context.Context, goodsID int64, orderSn string) (order.Order, error)
	// Lost writes a lost order's row, a Tomb, so that it is never written otherwise; a row that is there already is
	// returned as it is.
	WriteTombstone(ctx context.Context, o order.Order) (order.Order, error)
	// OrdersOf lists a buyer's orders, newest first, before an order number ("": from the top).
	OrdersOf(ctx context.Context, buyerID int64, before string, limit int) ([]order.Order, error)
	// OrdersOfGoods lists a goods' orders likewise, of one status or ("") of all.
	OrdersOfGoods(ctx context.Context, goodsID int64, status order.Status, before string, limit int) ([]order.Order, error)
}

// Service answers what has become of an order.
type Service struct {
	Store   OrderStore
	Pending PendingStore
	sales   order.SaleReader
	owners  order.SaleGetter
	Minter  *ordersn.Minter
}

// NewService makes a finder.
func NewService(records OrderStore, promises PendingStore, front order.SaleReader, owners order.SaleGetter, minter *ordersn.Minter) *Service {
	return &Service{Store: records, Pending: promises, sales: front, owners: owners, Minter: minter}
}

// Find reads one order of the actor's own: NotFound where the number is not ours, Forbidden where it is another's.
//
// Redis is asked first: what is pending there is queued. Pending ends only after MySQL's commit, so a number that is not
// pending is in MySQL, or was never promised, or its promise was lost with Redis: then it is of an epoch that is over.
//
// A row that is created and still pending is queued, too: InnoDB shows a commit to others before it is on disk, and a
// server killed in that moment comes back without it. Only the consumer knows when the commit was answered; it settles
// (see doubtful).
func (f *Service) Find(ctx context.Context, by seckill.Actor, orderSn string) (order.Order, error) {
	n, err := f.Minter.Parse(orderSn)
	if err != nil {
		return order.Order{}, NewNoSuchOrder()
	}
	line, pending, promiseErr := f.Pending.Pending(ctx, n.GoodsID, orderSn)
	if pending && line.BuyerID != by.ID {
		return order.Order{}, NewOtherBuyersOrder()
	}
	o, err := f.Store.Order(ctx, n.GoodsID, orderSn)
	switch {
	case err == nil && o.BuyerID != by.ID && !o.Tombstone():
		return order.Order{}, NewOtherBuyersOrder()
	case err == nil && (!pending || o.Status != order.Created || !commitUncertain(ctx, f.Pending, n.GoodsID)):
		return o, nil
	case pending:
		return f.queued(ctx, n, line)
	case !errors.Is(err, order.ErrNoSuchOrder):
		return order.Order{}, seckill.NewUnavailable("the order can't be looked up", err)
	case promiseErr != nil:
		return order.Order{}, seckill.NewUnavailable("the order can't be looked up", promiseErr)
	default:
		return f.unwritten(ctx, by, n, orderSn)
	}
}

// queued is an order that MySQL does not have yet.
func (f *Service) queued(ctx context.Context, n ordersn.Number, line reservation.OrderLine) (order.Order, error) {
	v, err := f.sales.Sale(ctx, n.GoodsID)
	if err != nil {
		return order.Order{}, err
	}
	return order.Order{
		OrderLine: line, GoodsID: n.GoodsID, Epoch: n.Epoch, Amount: v.Price * line.Quantity, Status: order.Queued, CreatedAt: n.MadeAt(),
	}, nil
}

// unwritten judges a number of ours that neither Redis nor MySQL has.
func (f *Service) unwritten(ctx context.Context, by seckill.Actor, n ordersn.Number, orderSn string) (order.Order, error) {
	v, err := f.sales.Sale(ctx, n.GoodsID)
	switch {
	case err != nil:
		return order.Order{}, err
	case v.Gate != seckill.GateOpen && (v.Gate != seckill.GateMissing || !v.Retired):
		return order.Order{}, seckill.NewRebuilding(&seckill.GateError{State: v.Gate, Epoch: v.Epoch})
	case n.Epoch < v.Epoch:
		return f.writeTombstone(ctx, by, n, orderSn, v)
	default:
		return order.Order{}, NewNoSuchOrder() // a number that was made, and refused before anybody was told it
	}
}

// lost says failed of a number whose epoch is over, once that stands in MySQL: who comes with the order later, having slept
// through the rebuild, can't have it written any more. Where the rebuild has written it since the first look, that holds.
// Nobody makes us write many rows this way: each number is of our making, was promised to somebody, and is written once.
func (f *Service) writeTombstone(ctx context.Context, by seckill.Actor, n ordersn.Number, orderSn string, v seckill.View) (order.Order, error) {
	o, err := f.Store.WriteTombstone(ctx, order.Order{
		OrderLine: reservation.OrderLine{OrderSn: orderSn, BuyerID: by.ID}, GoodsID: n.GoodsID, Epoch: n.Epoch,
		Status: order.Failed, FailureReason: order.FailedLost, CreatedAt: n.MadeAt(), ClosedAt: v.Now,
	})
	switch {
	case err != nil:
		return order.Order{}, seckill.NewUnavailable("the order can't be looked up", err)
	case o.BuyerID != by.ID && !o.Tombstone():
		return order.Order{}, NewOtherBuyersOrder()
	}
	return o, nil
}

// Mine pages through the actor's own orders, newest first.
func (f *Service) Mine(ctx context.Context, by seckill.Actor, before string, limit int) ([]order.Order, error) {
	orders, err := f.Store.OrdersOf(ctx, by.ID, before, limit)
	if err != nil {
		return nil, seckill.NewUnavailable("the orders can't be listed", err)
	}
	return withUncertain(ctx, f.Pending, orders), nil
}

// OfGoods pages through a sale's orders for who may manage it, newest first; status "" is all.
func (f *Service) OfGoods(ctx context.Context, by seckill.Actor, goodsID int64, status order.Status, before string, limit int) ([]order.Order, error) {
	if _, err := f.owners.Get(ctx, by, goodsID); err != nil {
		return nil, err
	}
	orders, err := f.Store.OrdersOfGoods(ctx, goodsID, status, before, limit)
	if err != nil {
		return nil, seckill.NewUnavailable("the orders can't be listed", err)
	}
	return withUncertain(ctx, f.Pending, orders), nil
}

func NewNoSuchOrder() error { return seckill.NewError(seckill.NotFound, "there is no such order") }

func NewOtherBuyersOrder() error {
	return seckill.NewError(seckill.Forbidden, "this is another buyer's order")
}

// PendingStore is what Redis knows of reservations that MySQL may not have yet.
type PendingStore interface {
	Pending(ctx context.Context, goodsID int64, orderSn string) (reservation.OrderLine, bool, error)
	// PendingAmong tells which of the numbers, by goods, are pending.
	PendingAmong(ctx context.Context, numbers map[int64][]string) (map[string]bool, error)
	// View reads how a sale stands in Redis at this moment.
	View(ctx context.Context, goodsID int64) (seckill.View, error)
}
