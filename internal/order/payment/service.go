package payment

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"flashsale.dev/seckill/internal/batcher"
	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/inventory"
	"flashsale.dev/seckill/internal/order/query"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/reservation"
)

// Store is MySQL as paying and cancelling need it.
type Store interface {
	// Receive writes a payment down and makes its order paid, or marks the payment to be given back where the order can't
	// keep it; the same payment again: what has become of it. Conflict where the amount is not the order's, or the number of
	// the payment stands for another one: then nothing is written. ErrNoSuchOrder.
	Receive(ctx context.Context, p Payment, now time.Time) (Receipt, error)
	// Cancel makes created orders of one goods cancelled, in one transaction, and says of each number, in its place, what became of it.
	Cancel(ctx context.Context, goodsID int64, orderSns []string, now time.Time) ([]Cancellation, error)
}

// Cancellation is what became of one order that was to be cancelled.
type Cancellation struct {
	Order order.Order
	Move  *order.StockMove // that gives the units back; nil where the order was cancelled before
	Err   error            // a Conflict where the order is neither created nor cancelled, or ErrNoSuchOrder; nil otherwise
}

// Service takes payments and cancellations of orders. Buyers of one goods who cancel at once share a transaction, and a call to
// Redis: each must lock the goods row, for which the writer of orders would wait behind every one of them. It is safe for concurrent use.
type Service struct {
	orders   *query.Service
	store    Store
	releaser *inventory.StockReleaser
	provider Provider
	now      func() time.Time
	log      *slog.Logger

	cancels  *batcher.Batcher[int64, string, Cancellation]
	releases *batcher.Batcher[int64, order.StockMove, struct{}]
}

// NewService makes a cashier.
func NewService(finder *query.Service, store Store, giver *inventory.StockReleaser, provider Provider, log *slog.Logger) *Service {
	c := &Service{orders: finder, store: store, releaser: giver, provider: provider, now: time.Now, log: log}
	c.cancels = batcher.New(reservation.MaxBatch, c.cancelBatch)
	c.releases = batcher.New(reservation.MaxBatch, c.releaseBatch)
	return c
}

// changeDeadline bounds a charge with its writing down, and a trip of cancellations: both go on when a buyer has gone.
const changeDeadline = 5 * time.Second

// Pay has the provider take the money for the actor's own created order, and makes it paid. Again: the same state. Still
// queued: Conflict, to be asked again in a second. Of an order that takes no payment no money is taken; where it stopped
// taking one while the provider was at it, the answer is a Conflict and the money is given back.
func (c *Service) Pay(ctx context.Context, by seckill.Actor, orderSn string) (order.Order, error) {
	o, err := c.findOwn(ctx, by, orderSn)
	if err != nil || o.Status == order.Paid {
		return o, err
	}
	if reason := RefundReasonFor(o, c.now()); reason != "" {
		return order.Order{}, newUnpayable(o)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), changeDeadline)
	defer cancel()
	p, err := c.provider.Charge(ctx, o)
	if err != nil {
		return order.Order{}, seckill.NewUnavailable("the payment's outcome is unknown", err)
	}
	r, err := c.receive(ctx, p)
	switch {
	case err != nil:
		return order.Order{}, err
	case r.Order.Status == order.Paid:
		return r.Order, nil
	default:
		return order.Order{}, newUnpayable(r.Order)
	}
}

// Receive takes a provider's word, verified before, that it took money for an order: the order becomes paid, or the money
// goes back. Again: what has become of it. Conflict where the order is still queued, to be told again in a second, and
// where the amount is not the order's; NotFound where there is no such order. A refusal keeps nothing, and is logged.
func (c *Service) Receive(ctx context.Context, paymentID, orderSn string, amount int64) (Receipt, error) {
	o, err := c.findAny(ctx, orderSn)
	if err == nil {
		var r Receipt
		r, err = c.receive(ctx, Payment{ID: paymentID, GoodsID: o.GoodsID, OrderSn: orderSn, Amount: amount})
		if err == nil {
			return r, nil
		}
	}
	if o.Status != order.Queued && seckill.ReasonOf(err) != seckill.Unavailable {
		c.log.WarnContext(ctx, "payment refused", "payment_id", paymentID, "order_sn", orderSn, "amount", amount, "err", err)
	}
	return Receipt{}, err
}

func (c *Service) receive(ctx context.Context, p Payment) (r Receipt, err error) {
	err = order.RetryTransaction(ctx, func() error { r, err = c.store.Receive(ctx, p, c.now()); return err })
	if err == nil && r.State == Refunding {
		c.log.InfoContext(ctx, "payment goes back", "payment_id", p.ID, "order_sn", p.OrderSn, "reason", r.Reason)
	}
	return r, changeError(err)
}

// Cancel makes a created order cancelled; its units go back on sale, once. Again: the same state.
func (c *Service) Cancel(ctx context.Context, by seckill.Actor, orderSn string) (order.Order, error) {
	o, err := c.findOwn(ctx, by, orderSn)
	if err != nil {
		return order.Order{}, err
	}
	done, err := c.cancels.Do(ctx, o.GoodsID, orderSn)
	if err == nil {
		err = done.Err
	}
	if err != nil {
		return order.Order{}, changeError(err)
	}
	if done.Move != nil {
		_, _ = c.releases.Do(context.WithoutCancel(ctx), o.GoodsID, *done.Move) // what fails is left to the giver's round
	}
	return done.Order, nil
}

func (c *Service) cancelBatch(ctx context.Context, goodsID int64, sns []string) (list []Cancellation, err error) {
	ctx, cancel := context.WithTimeout(ctx, changeDeadline)
	defer cancel()
	err = order.RetryTransaction(ctx, func() error { list, err = c.store.Cancel(ctx, goodsID, sns, c.now()); return err })
	return list, err
}

// giveTrip is another than the cancellations': a Redis that is slow must not keep the next ones from MySQL.
func (c *Service) releaseBatch(ctx context.Context, _ int64, moves []order.StockMove) ([]struct{}, error) {
	ctx, cancel := context.WithTimeout(ctx, order.RedisDeadline)
	defer cancel()
	c.releaser.Release(ctx, moves)
	return make([]struct{}, len(moves)), nil
}

// own finds the actor's order and says no while it is queued. A row that Redis does not know to be settled will do here: what
// is committed on it is on disk only together with it. Who was told "created" while Redis could not be asked may cancel.
func (c *Service) findOwn(ctx context.Context, by seckill.Actor, orderSn string) (order.Order, error) {
	o, err := c.orders.Find(ctx, by, orderSn)
	if err != nil || o.Status != order.Queued {
		return o, err
	}
	if row, err := c.orders.Store.Order(ctx, o.GoodsID, orderSn); err == nil {
		return row, nil
	}
	e := seckill.NewError(seckill.Conflict, "the order is still on its way; ask again in a second")
	e.RetryAfter = time.Second
	return o, e
}

// anyones is own for a provider, who knows no buyers: it finds out whose the order is first.
func (c *Service) findAny(ctx context.Context, orderSn string) (order.Order, error) {
	n, err := c.orders.Minter.Parse(orderSn)
	if err != nil {
		return order.Order{}, query.NewNoSuchOrder()
	}
	buyer := int64(0) // nobody's: Find says why there is no order
	if line, pending, err := c.orders.Pending.Pending(ctx, n.GoodsID, orderSn); err == nil && pending {
		buyer = line.BuyerID
	} else if o, err := c.orders.Store.Order(ctx, n.GoodsID, orderSn); err == nil {
		buyer = o.BuyerID // asked last: what is pending no more is in MySQL
	}
	return c.findOwn(ctx, seckill.Actor{ID: buyer, Role: seckill.Buyer}, orderSn)
}

// newUnpayable says why an order takes no payment.
func newUnpayable(o order.Order) error {
	if o.Status == order.Created {
		return seckill.NewError(seckill.Conflict, "the time to pay is over")
	}
	return seckill.NewError(seckill.Conflict, "the order is %s", o.Status)
}

func changeError(err error) error {
	switch {
	case err == nil || seckill.ReasonOf(err) != "":
		return err
	case errors.Is(err, order.ErrNoSuchOrder):
		return query.NewNoSuchOrder()
	default:
		return seckill.NewUnavailable("the order could not be changed; the outcome is unknown", err)
	}
}
