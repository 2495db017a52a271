package query

import (
	"context"
	"errors"
	"time"

	"flashsale.dev/seckill/internal/apierror"
	"flashsale.dev/seckill/internal/batcher"
	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/inventory"
	"flashsale.dev/seckill/internal/ordersn"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/reservation"
)

// Deps are what a Service reads.
type Deps struct {
	Store  Store
	Redis  Redis
	Reader order.SaleReader
	Sales  *inventory.SaleService // checks who manages a sale
	Keys   *ordersn.Keys
	// PublishDeadline is the longest time of all nodes from a reservation to the end of its
	// publishing.
	PublishDeadline time.Duration
}

// Service reads the status of orders. Concurrent queries of one sale share a call to Redis and a
// statement. It is safe for concurrent use.
type Service struct {
	Deps
	lookups *batcher.Batcher[int64, string, record]
}

// NewService returns a service.
func NewService(deps Deps) *Service {
	s := &Service{Deps: deps}
	s.lookups = batcher.New(reservation.MaxBatch, s.lookUp)
	return s
}

// Find returns the actor's own order. It returns NotFound for a number that this service did not
// make, and Forbidden for another buyer's order.
//
// It reads Redis first: a pending order is queued. An order stays pending until MySQL has committed
// it. A number that is not pending is therefore in MySQL, was never reserved, or was lost with
// Redis.
//
// A row that is created and still pending also counts as queued. InnoDB shows a commit to readers
// before it is on disk, and a server that crashes then loses it. Only the consumer gets the result
// of the commit, and it settles the order after that (see commitUncertain).
func (s *Service) Find(ctx context.Context, by seckill.Actor, orderSn string) (order.Order, error) {
	n, r, err := s.find(ctx, orderSn)
	if err != nil {
		return order.Order{}, err
	}
	return s.decide(ctx, by, n, orderSn, r)
}

// find parses a number and reads its order. The error is NotFound for an invented number.
func (s *Service) find(ctx context.Context, orderSn string) (ordersn.Number, record, error) {
	n, err := s.Keys.Parse(orderSn)
	if err != nil {
		return n, record{}, NewNoSuchOrder()
	}
	r, err := s.lookups.Do(ctx, n.GoodsID, orderSn)
	if err != nil {
		return n, r, apierror.NewUnavailable("the order can't be looked up", err)
	}
	return n, r, nil
}

// decide returns the status of an order that was looked up.
func (s *Service) decide(
	ctx context.Context, by seckill.Actor, n ordersn.Number, orderSn string, r record,
) (order.Order, error) {
	switch {
	case r.pending && r.line.BuyerID != by.ID, r.err == nil && isOthers(r.row, by, n):
		return order.Order{}, newOtherBuyersOrder()
	case r.err == nil && (!r.pending || r.row.Status != order.Created ||
		!commitUncertain(ctx, s.Redis, n.GoodsID)):
		return r.row, nil
	case r.pending:
		v, err := s.Reader.ExposedSale(ctx, n.GoodsID)
		return queued(n, r.line, v), err
	case !errors.Is(r.err, order.ErrNoSuchOrder):
		return order.Order{}, apierror.NewUnavailable("the order can't be looked up", r.err)
	case r.pendingErr != nil:
		return order.Order{}, apierror.NewUnavailable("the order can't be looked up", r.pendingErr)
	default:
		return s.unwritten(ctx, by, n, orderSn)
	}
}

// isOthers reports whether a row is another buyer's. The number of an earlier release does not say
// whose it is. So the row of such a lost order has the buyer who asked first.
func isOthers(o order.Order, by seckill.Actor, n ordersn.Number) bool {
	return o.BuyerID != by.ID && (n.Epoch == 0 || !o.Tombstone())
}

// queued returns an order that MySQL does not have yet.
func queued(n ordersn.Number, line reservation.OrderLine, v seckill.View) order.Order {
	return order.Order{
		OrderLine: line, GoodsID: n.GoodsID, Amount: v.Price * line.Quantity,
		Status: order.Queued, CreatedAt: n.IssuedAt(),
	}
}

// clockStep is how far Redis' clock may go back without making the path of a lost order usable.
const clockStep = 5 * time.Second

// unwritten decides on a number that neither Redis nor MySQL has.
//
// A number that is not the actor's is refused without a further read. While the path is valid, the
// reservation may still be made, so the order is queued. Afterwards it is lost, if Redis did not
// have it pending in an epoch whose gate was open. To know that, unwritten reads the order again
// between two views of the sale, which must have an open gate and the same epoch. A rebuild after
// that has written the order, or has begun an epoch in which WriteTombstone refuses.
//
// Merchants and payment providers name no buyer. They may ask for an order that only the queue has,
// so they get NotFound only after the same reads.
func (s *Service) unwritten(
	ctx context.Context, by seckill.Actor, n ordersn.Number, orderSn string,
) (order.Order, error) {
	_, err := s.Keys.Verify(orderSn, by.ID)
	verified := err == nil
	if !verified && by.ID != "" {
		return order.Order{}, NewNoSuchOrder()
	}
	before, err := s.openSale(ctx, n.GoodsID)
	if err != nil {
		return order.Order{}, err
	}
	r, err := s.lookups.Do(ctx, n.GoodsID, orderSn)
	switch {
	case err != nil || r.pendingErr != nil:
		return order.Order{}, apierror.NewUnavailable(
			"the order can't be looked up", errors.Join(err, r.pendingErr),
		)
	case !verified && (r.pending || !errors.Is(r.err, order.ErrNoSuchOrder)):
		return s.decide(ctx, buyerOf(r), n, orderSn, r)
	case r.pending:
		return queued(n, r.line, before), nil
	case verified && before.Now.Before(n.ExpiresAt().Add(s.PublishDeadline+clockStep)):
		return queued(n, reservation.OrderLine{OrderSn: orderSn, BuyerID: by.ID}, before), nil
	}
	after, err := s.openSale(ctx, n.GoodsID)
	if err != nil {
		return order.Order{}, err
	}
	if after.Epoch != before.Epoch {
		return order.Order{}, seckill.NewRebuilding(nil)
	}
	if !verified {
		return order.Order{}, NewNoSuchOrder()
	}
	return s.writeTombstone(ctx, by, n, orderSn, after)
}

// openSale reads a sale. It returns an error unless the gate is open or the sale is retired.
func (s *Service) openSale(ctx context.Context, goodsID int64) (seckill.View, error) {
	v, err := s.Reader.ExposedSale(ctx, goodsID)
	if err == nil && v.Gate != seckill.GateOpen && (v.Gate != seckill.GateMissing || !v.Retired) {
		err = seckill.NewRebuilding(&seckill.GateError{State: v.Gate, Epoch: v.Epoch})
	}
	return v, err
}

// writeTombstone records in MySQL that an order is lost, and then returns it as failed. A message
// that a suspended API publishes later finds that row, and does not create the order. An order that
// was written meanwhile is returned as it is. A buyer gets at most one row for each path.
func (s *Service) writeTombstone(
	ctx context.Context, by seckill.Actor, n ordersn.Number, orderSn string, v seckill.View,
) (order.Order, error) {
	now, err := s.Store.Now(ctx)
	if err != nil {
		return order.Order{}, apierror.NewUnavailable("the order can't be looked up", err)
	}
	o, err := s.Store.WriteTombstone(ctx, order.Order{
		OrderLine: reservation.OrderLine{OrderSn: orderSn, BuyerID: by.ID, Epoch: v.Epoch},
		GoodsID:   n.GoodsID, Status: order.Failed, FailureReason: order.FailedLost,
		CreatedAt: n.IssuedAt(), ClosedAt: now,
	})
	switch {
	case err != nil:
		return order.Order{}, apierror.NewUnavailable("the order can't be looked up", err)
	case isOthers(o, by, n):
		return order.Order{}, newOtherBuyersOrder()
	}
	return o, nil
}

// Mine lists the actor's own orders before a number ("": from the top), newest first.
func (s *Service) Mine(
	ctx context.Context, by seckill.Actor, before string, limit int,
) ([]order.Order, error) {
	orders, err := s.Store.OrdersOf(ctx, by.ID, before, limit)
	if err != nil {
		return nil, apierror.NewUnavailable("the orders can't be listed", err)
	}
	return withUncertain(ctx, s.Store, s.Redis, orders), nil
}

// OfGoods lists the orders of a sale that the actor manages, newest first. The status "" means all.
func (s *Service) OfGoods(
	ctx context.Context, by seckill.Actor, goodsID int64, status order.Status, before string,
	limit int,
) ([]order.Order, error) {
	if _, err := s.Sales.Get(ctx, by, goodsID); err != nil {
		return nil, err
	}
	orders, err := s.Store.OrdersOfGoods(ctx, goodsID, status, before, limit)
	if err != nil {
		return nil, apierror.NewUnavailable("the orders can't be listed", err)
	}
	return withUncertain(ctx, s.Store, s.Redis, orders), nil
}

// NewNoSuchOrder returns the refusal of an unknown order number.
func NewNoSuchOrder() error { return apierror.New(apierror.NotFound, "there is no such order") }

func newOtherBuyersOrder() error {
	return apierror.New(apierror.Forbidden, "this is another buyer's order")
}
