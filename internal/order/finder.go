package order

import (
	"context"
	"errors"

	"flashsale.dev/seckill/internal/ordersn"
	"flashsale.dev/seckill/internal/seckill"
)

// Records is what MySQL knows of orders.
type Records interface {
	// Order reads one order; ErrNoSuchOrder where there is no row.
	Order(ctx context.Context, goodsID int64, orderSn string) (Order, error)
	// Lost writes a lost order's row, a Tomb, so that it is never written otherwise; a row that is there already is
	// returned as it is.
	Lost(ctx context.Context, o Order) (Order, error)
	// OrdersOf lists a buyer's orders, newest first, before an order number ("": from the top).
	OrdersOf(ctx context.Context, buyerID int64, before string, limit int) ([]Order, error)
	// OrdersOfGoods lists a goods' orders likewise, of one status or ("") of all.
	OrdersOfGoods(ctx context.Context, goodsID int64, status Status, before string, limit int) ([]Order, error)
}

// Promises is what Redis knows of reservations that MySQL may not have yet.
type Promises interface {
	Pending(ctx context.Context, goodsID int64, orderSn string) (seckill.Line, bool, error)
	// PendingAmong tells which of the numbers, by goods, are pending.
	PendingAmong(ctx context.Context, numbers map[int64][]string) (map[string]bool, error)
	// View reads how a sale stands in Redis at this moment.
	View(ctx context.Context, goodsID int64) (seckill.View, error)
}

// Owners knows whose a sale is; seckill.Sales is one.
type Owners interface {
	// Get reads a sale that the actor may manage; NotFound or Forbidden.
	Get(ctx context.Context, by seckill.Actor, goodsID int64) (seckill.Sale, error)
}

// Finder answers what has become of an order.
type Finder struct {
	records  Records
	promises Promises
	front    Front
	owners   Owners
	minter   *ordersn.Minter
}

// NewFinder makes a finder.
func NewFinder(records Records, promises Promises, front Front, owners Owners, minter *ordersn.Minter) *Finder {
	return &Finder{records: records, promises: promises, front: front, owners: owners, minter: minter}
}

// Find reads one order of the actor's own: NotFound where the number is not ours, Forbidden where it is another's.
//
// Redis is asked first: what is pending there is queued. Pending ends only after MySQL's commit, so a number that is not
// pending is in MySQL, or was never promised, or its promise was lost with Redis: then it is of an epoch that is over.
//
// A row that is created and still pending is queued, too: InnoDB shows a commit to others before it is on disk, and a
// server killed in that moment comes back without it. Only the consumer knows when the commit was answered; it settles
// (see doubtful).
func (f *Finder) Find(ctx context.Context, by seckill.Actor, orderSn string) (Order, error) {
	n, err := f.minter.Parse(orderSn)
	if err != nil {
		return Order{}, noSuchOrder()
	}
	line, pending, promiseErr := f.promises.Pending(ctx, n.GoodsID, orderSn)
	if pending && line.BuyerID != by.ID {
		return Order{}, othersOrder()
	}
	o, err := f.records.Order(ctx, n.GoodsID, orderSn)
	switch {
	case err == nil && o.BuyerID != by.ID && !o.Tomb():
		return Order{}, othersOrder()
	case err == nil && (!pending || o.Status != Created || !doubtful(ctx, f.promises, n.GoodsID)):
		return o, nil
	case pending:
		return f.queued(ctx, n, line)
	case !errors.Is(err, ErrNoSuchOrder):
		return Order{}, seckill.Down("the order can't be looked up", err)
	case promiseErr != nil:
		return Order{}, seckill.Down("the order can't be looked up", promiseErr)
	default:
		return f.unwritten(ctx, by, n, orderSn)
	}
}

// queued is an order that MySQL does not have yet.
func (f *Finder) queued(ctx context.Context, n ordersn.Number, line seckill.Line) (Order, error) {
	v, err := f.front.Sale(ctx, n.GoodsID)
	if err != nil {
		return Order{}, err
	}
	return Order{
		Line: line, GoodsID: n.GoodsID, Epoch: n.Epoch, Amount: v.Price * line.Quantity, Status: Queued, CreatedAt: n.MadeAt(),
	}, nil
}

// unwritten judges a number of ours that neither Redis nor MySQL has.
func (f *Finder) unwritten(ctx context.Context, by seckill.Actor, n ordersn.Number, orderSn string) (Order, error) {
	v, err := f.front.Sale(ctx, n.GoodsID)
	switch {
	case err != nil:
		return Order{}, err
	case v.Gate != seckill.GateOpen && (v.Gate != seckill.GateMissing || !v.Retired):
		return Order{}, seckill.Rebuilding(&seckill.GateError{State: v.Gate, Epoch: v.Epoch})
	case n.Epoch < v.Epoch:
		return f.lost(ctx, by, n, orderSn, v)
	default:
		return Order{}, noSuchOrder() // a number that was made, and refused before anybody was told it
	}
}

// lost says failed of a number whose epoch is over, once that stands in MySQL: who comes with the order later, having slept
// through the rebuild, can't have it written any more. Where the rebuild has written it since the first look, that holds.
// Nobody makes us write many rows this way: each number is of our making, was promised to somebody, and is written once.
func (f *Finder) lost(ctx context.Context, by seckill.Actor, n ordersn.Number, orderSn string, v seckill.View) (Order, error) {
	o, err := f.records.Lost(ctx, Order{
		Line: seckill.Line{OrderSn: orderSn, BuyerID: by.ID}, GoodsID: n.GoodsID, Epoch: n.Epoch,
		Status: Failed, FailureReason: FailedLost, CreatedAt: n.MadeAt(), ClosedAt: v.Now,
	})
	switch {
	case err != nil:
		return Order{}, seckill.Down("the order can't be looked up", err)
	case o.BuyerID != by.ID && !o.Tomb():
		return Order{}, othersOrder()
	}
	return o, nil
}

// Mine pages through the actor's own orders, newest first.
func (f *Finder) Mine(ctx context.Context, by seckill.Actor, before string, limit int) ([]Order, error) {
	orders, err := f.records.OrdersOf(ctx, by.ID, before, limit)
	if err != nil {
		return nil, seckill.Down("the orders can't be listed", err)
	}
	return unsure(ctx, f.promises, orders), nil
}

// OfGoods pages through a sale's orders for who may manage it, newest first; status "" is all.
func (f *Finder) OfGoods(ctx context.Context, by seckill.Actor, goodsID int64, status Status, before string, limit int) ([]Order, error) {
	if _, err := f.owners.Get(ctx, by, goodsID); err != nil {
		return nil, err
	}
	orders, err := f.records.OrdersOfGoods(ctx, goodsID, status, before, limit)
	if err != nil {
		return nil, seckill.Down("the orders can't be listed", err)
	}
	return unsure(ctx, f.promises, orders), nil
}

func noSuchOrder() error { return seckill.Refuse(seckill.NotFound, "there is no such order") }
func othersOrder() error { return seckill.Refuse(seckill.Forbidden, "this is another buyer's order") }
