package payment

import (
	"context"
	"log/slog"
	"time"

	"flashsale.dev/seckill/internal/apierror"
	"flashsale.dev/seckill/internal/batcher"
	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/inventory"
	"flashsale.dev/seckill/internal/order/query"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/reservation"
)

// Cancellation is the outcome of cancelling one order.
type Cancellation struct {
	Order order.Order
	Move  *order.StockMove // returns the units; nil if the order was cancelled before
	Err   error            // Conflict if the status allows no cancellation, or ErrNoSuchOrder
}

// Service takes payments and cancellations of orders. Concurrent payments of one sale share a
// transaction, and so do concurrent cancellations, which also share a call to Redis. Each
// cancellation must lock the goods row, and separate transactions would delay the writer of orders.
// It is safe for concurrent use.
type Service struct {
	orders   *query.Service
	store    Store
	releaser *inventory.StockReleaser
	charger  Charger // nil for a provider with pages
	pages    Pages   // nil for a provider without pages
	log      *slog.Logger

	payments *batcher.Batcher[int64, Payment, Receipt]
	cancels  *batcher.Batcher[int64, string, Cancellation]
	releases *batcher.Batcher[int64, order.StockMove, struct{}]
}

// NewService returns a service that takes money through provider, a Charger or Pages.
func NewService(
	orders *query.Service, store Store, releaser *inventory.StockReleaser, provider Provider,
	log *slog.Logger,
) *Service {
	s := &Service{orders: orders, store: store, releaser: releaser, log: log}
	s.charger, _ = provider.(Charger)
	s.pages, _ = provider.(Pages)
	s.payments = batcher.New(reservation.MaxBatch, inTransaction(store, store.Receive))
	s.cancels = batcher.New(reservation.MaxBatch, inTransaction(store, store.Cancel))
	s.releases = batcher.New(reservation.MaxBatch, s.releaseBatch)
	return s
}

// payDeadline bounds a charge, which continues after the client has disconnected.
const payDeadline = 5 * time.Second

// Pay charges the buyer through the provider and makes the actor's own order paid. If buyers pay on
// the provider's pages, Pay returns the created order with its CheckoutURL instead. A repeated call
// returns the paid order, or the same page. A queued order is a Conflict with a retry after one
// second. Any other status is a Conflict without a charge. If the status changes during the charge,
// Pay returns Conflict and the refunder returns the money.
func (s *Service) Pay(ctx context.Context, by seckill.Actor, orderSn string) (order.Order, error) {
	o, err := s.orders.FindChangeable(ctx, by, orderSn)
	if err != nil || o.Status == order.Paid {
		return o, err
	}
	now, err := s.store.Now(ctx)
	if err != nil {
		return order.Order{}, apierror.NewUnavailable("the database's clock can't be read", err)
	}
	if reason := RefundReasonFor(o, now); reason != "" {
		return order.Order{}, newUnpayable(o)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), payDeadline)
	defer cancel()
	if s.pages != nil && o.Amount > 0 {
		return s.openPage(ctx, o, now)
	}
	p, err := s.charge(ctx, o)
	switch {
	case apierror.ReasonOf(err) == apierror.Conflict:
		return order.Order{}, err
	case err != nil:
		return order.Order{}, apierror.NewUnavailable("the payment's outcome is unknown", err)
	}
	r, err := s.receive(ctx, p)
	switch {
	case err != nil:
		return order.Order{}, err
	case r.Order.Status == order.Paid:
		return r.Order, nil
	default:
		return order.Order{}, newUnpayable(r.Order)
	}
}

// charge charges the buyer. An order that costs nothing needs no provider's page; its payment has
// the order's number.
func (s *Service) charge(ctx context.Context, o order.Order) (Payment, error) {
	if s.charger == nil {
		return Payment{ID: o.OrderSn, GoodsID: o.GoodsID, OrderSn: o.OrderSn}, nil
	}
	return s.charger.Charge(ctx, o)
}

// Receive records a provider's verified report that it charged a buyer. The order becomes paid, or
// the payment is refunded, as one of a wrong amount is. The same report again returns the recorded
// outcome. A queued order is a Conflict with a retry after one second. An unknown order is
// NotFound. A refusal records nothing and is logged. The goods id is the order's; a provider may
// report it too, and then it must be the same.
func (s *Service) Receive(ctx context.Context, p Payment) (Receipt, error) {
	o, err := s.orders.FindChangeableByNumber(ctx, p.OrderSn)
	if err == nil && p.GoodsID != 0 && o.GoodsID != p.GoodsID {
		err = query.NewNoSuchOrder()
	}
	p.GoodsID = o.GoodsID
	var r Receipt
	if err == nil {
		if r, err = s.receive(ctx, p); err == nil {
			return r, nil
		}
	}
	if o.Status != order.Queued && apierror.ReasonOf(err) != apierror.Unavailable {
		s.log.WarnContext(ctx, "payment refused", "payment_id", p.ID, "order_sn", p.OrderSn,
			"amount", p.Amount, "currency", p.Currency, "err", err)
	}
	return Receipt{}, err
}

// receive records a payment and logs one that will be refunded. The money is taken, so it continues
// without its caller.
func (s *Service) receive(ctx context.Context, p Payment) (r Receipt, err error) {
	r, err = s.payments.Do(context.WithoutCancel(ctx), p.GoodsID, p)
	if err == nil {
		err = r.Err
	}
	if err == nil && r.State == Refunding {
		s.log.InfoContext(ctx, "payment will be refunded", "payment_id", p.ID, "order_sn",
			p.OrderSn, "reason", r.Reason)
	}
	return r, query.ChangeError(err)
}

// inTransaction returns the batcher's function for changes of one goods in one transaction.
func inTransaction[Q, A any](
	clock order.Clock,
	change func(ctx context.Context, goodsID int64, requests []Q, now time.Time) ([]A, error),
) batcher.Func[int64, Q, A] {
	return func(ctx context.Context, goodsID int64, requests []Q) (answers []A, err error) {
		err = order.Change(ctx, clock, func(ctx context.Context, now time.Time) error {
			answers, err = change(ctx, goodsID, requests, now)
			return err
		})
		return answers, err
	}
}

// Cancel cancels the actor's own created order and returns its units to the sale once. A repeated
// call returns the cancelled order.
func (s *Service) Cancel(
	ctx context.Context, by seckill.Actor, orderSn string,
) (order.Order, error) {
	o, err := s.orders.FindChangeable(ctx, by, orderSn)
	if err != nil {
		return order.Order{}, err
	}
	done, err := s.cancels.Do(ctx, o.GoodsID, orderSn)
	return s.cancelled(ctx, done, err)
}

// cancelled returns the units of an order that was cancelled, and has its page ended. It ends the
// page for a repeated call too: the first one may have had no answer from the database.
func (s *Service) cancelled(
	ctx context.Context, done Cancellation, err error,
) (order.Order, error) {
	if err == nil {
		err = done.Err
	}
	if err != nil {
		return order.Order{}, query.ChangeError(err)
	}
	if done.Move != nil {
		// If this fails, the releaser applies the move later.
		_, _ = s.releases.Do(context.WithoutCancel(ctx), done.Order.GoodsID, *done.Move)
	}
	s.hasten(context.WithoutCancel(ctx), done.Order)
	return done.Order, nil
}

// releaseBatch applies the moves of cancelled orders. It is a batcher of its own, so that a slow
// Redis does not delay the next cancellations in MySQL.
func (s *Service) releaseBatch(
	ctx context.Context, _ int64, moves []order.StockMove,
) ([]struct{}, error) {
	ctx, cancel := context.WithTimeout(ctx, order.RedisDeadline)
	defer cancel()
	s.releaser.Release(ctx, moves)
	return make([]struct{}, len(moves)), nil
}

// newUnpayable returns the refusal of an order that cannot be paid.
func newUnpayable(o order.Order) error {
	if o.Status == order.Created {
		return apierror.New(apierror.Conflict, "the time to pay is over")
	}
	return apierror.New(apierror.Conflict, "the order is %s", o.Status)
}
