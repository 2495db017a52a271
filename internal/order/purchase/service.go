package purchase

import (
	"context"
	"errors"
	"log/slog"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"flashsale.dev/seckill/internal/apierror"
	"flashsale.dev/seckill/internal/batcher"
	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/message"
	"flashsale.dev/seckill/internal/order/stats"
	"flashsale.dev/seckill/internal/ordersn"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/reservation"
)

// Request is one buyer's purchase: units of a sale, and the path that permits it.
type Request struct {
	GoodsID  int64
	Buyer    seckill.Actor
	Path     string // 32 lower-case hex digits
	Quantity int64  // 1 to seckill.MaxPerBuyerLimit
}

// ReservationStore reserves units in Redis.
type ReservationStore interface {
	// Reserve decides up to reservation.MaxBatch reservations in one atomic step. After a
	// *seckill.GateError it has taken nothing.
	Reserve(
		ctx context.Context, goodsID, epoch int64, rs []reservation.Reservation,
	) (reservation.Result, error)
	// SoldOut reports which reservations Reserve would refuse because no unit is left, at a lower
	// cost. It may leave any of them to Reserve.
	SoldOut(
		ctx context.Context, goodsID, epoch int64, rs []reservation.Reservation,
	) ([]bool, error)
	// Confirmed removes outbox entries that the queue has confirmed.
	Confirmed(ctx context.Context, goodsID int64, ids ...string) error
	// Pending finds a reservation that MySQL may not have yet.
	Pending(ctx context.Context, goodsID int64, orderSn string) (reservation.OrderLine, bool, error)
	// EndRest makes the workers serve a sale that may be at rest.
	EndRest(ctx context.Context, goodsID int64) error
}

// Orders finds orders in MySQL.
type Orders interface {
	// Written reports whether an order has a row. A parked order is an error.
	Written(ctx context.Context, goodsID int64, orderSn string) (bool, error)
}

// Service takes purchases: it reserves, publishes and answers. Concurrent purchases of one sale
// share one script call and one message with one confirm. It is safe for concurrent use.
type Service struct {
	sales     order.SaleReader
	redis     ReservationStore
	orders    Orders
	publisher order.Publisher
	keys      *ordersn.Keys
	log       *slog.Logger
	deadline  time.Duration
	metrics   Metrics
	tracer    order.Tracer

	counters *stats.Counters         // may be nil
	hints    *lru.Cache[int64, hint] // by goods id
	checks   *batcher.Batcher[batchKey, tracedReservation, error]
	reserves *batcher.Batcher[batchKey, tracedReservation, result]
	confirms *batcher.Batcher[int64, string, struct{}]
}

// hint is what the last calls to Redis have shown of a sale. A wrong hint only costs a second call,
// because Redis decides each purchase.
type hint struct {
	epoch   int64
	soldOut bool // no unit was left
}

// maxHints bounds the sales that a Service remembers, as most sales end and are never asked for
// again. A forgotten one costs a call to Redis.
const maxHints = 10_000

// batchKey groups the purchases that one script call decides. Paths that an earlier release may
// have stored have calls of their own (see reservation.Reservation's StoredPath for their end).
type batchKey struct {
	goodsID, epoch int64
	stored         bool
}

// result is one buyer's part of a batch: the verdict, and the publication of what was taken.
type result struct {
	reservation.Verdict
	publication   *publication
	notReplicated error // the order must not be confirmed while this is set
}

// NewService returns a purchase service. publishDeadline bounds the time from a reservation to its
// confirm; afterwards the relay publishes the order. counters, metrics and tracer may be nil.
func NewService(
	sales order.SaleReader, redis ReservationStore, orders Orders, publisher order.Publisher,
	keys *ordersn.Keys, counters *stats.Counters, metrics Metrics, tracer order.Tracer,
	publishDeadline time.Duration, log *slog.Logger,
) *Service {
	hints, _ := lru.New[int64, hint](maxHints) // it fails for sizes below 1
	s := &Service{
		sales: sales, redis: redis, orders: orders, publisher: publisher, keys: keys, hints: hints,
		counters: counters, metrics: metrics, tracer: tracer, deadline: publishDeadline, log: log,
	}
	s.checks = batcher.New(reservation.MaxBatch, s.checkBatch)
	s.reserves = batcher.New(reservation.MaxBatch, s.reserveBatch)
	s.confirms = batcher.New(reservation.MaxBatch, s.confirmBatch)
	return s
}

// Place reserves and publishes one purchase and returns the order number. A path that was used
// before returns its order again. Any other outcome is an error. A taken order is processed even if
// the caller stops waiting.
func (s *Service) Place(ctx context.Context, p Request) (string, error) {
	r, by := s.reservation(p), time.Now().Add(s.deadline) // as in reserveBatch
	got, err := s.reserve(ctx, p.GoodsID, r)
	reason := apierror.ReasonOf(err)
	retired := reason == apierror.Ended || reason == apierror.BadPath // see gateError
	if (retired || got.Code == reservation.WrongPath) && r.StoredPath == "" {
		// Redis may have forgotten what the path bought. MySQL has it.
		written, failed := s.orders.Written(ctx, p.GoodsID, r.OrderSn)
		if written || failed != nil {
			return r.OrderSn, apierror.OrUnavailable(failed, "the order can't be looked up")
		}
	}
	if err == nil {
		err = got.Err()
	}
	if err != nil {
		return "", err
	}
	if got.notReplicated != nil { // the order is processed, but must not be confirmed yet
		return "", apierror.NewUnavailable(
			"the reservation is not safe yet; use the same path", got.notReplicated)
	}
	switch {
	case got.publication != nil:
		err = got.publication.wait(ctx)
	case got.Code == reservation.Repeated:
		err = s.confirmAgain(ctx, p.GoodsID, got.OrderSn, by)
	}
	if err != nil {
		return "", apierror.NewUnavailable(
			"the order was not confirmed in time; use the same path", err)
	}
	return got.OrderSn, nil
}

// Precheck returns the error of Place as far as it shows without a reservation: of the path, of the
// sale's window or of its stock, in this order.
func (s *Service) Precheck(ctx context.Context, p Request) error {
	v, err := s.sales.Sale(ctx, p.GoodsID)
	if err != nil {
		return err
	}
	if _, err := s.keys.VerifyPath(p.Path, p.GoodsID, p.Buyer.ID, time.Now()); err != nil {
		return reservation.Verdict{Code: reservation.WrongPath}.Err()
	}
	return v.CheckSelling(v.Now, v.Available)
}

// SeemsSoldOut reports whether the last call to Redis found no unit of a sale. It costs no call.
func (s *Service) SeemsSoldOut(goodsID int64) bool {
	h, _ := s.hints.Peek(goodsID)
	return h.soldOut
}

// CheckSoldOut refuses a purchase if Redis has no unit left now. It asks Redis only if the last
// call found none, and returns nil where Place has to decide. It takes nothing and makes no number,
// so it costs less than Place. ctx needs no deadline, because the call to Redis has one.
func (s *Service) CheckSoldOut(ctx context.Context, p Request) error {
	h, _ := s.hints.Get(p.GoodsID)
	if !h.soldOut {
		return nil
	}
	now := time.Now()
	n, err := s.keys.VerifyPath(p.Path, p.GoodsID, p.Buyer.ID, now)
	if err != nil || n.ExpiresAt().Sub(now) < pathMargin {
		return nil
	}
	r := reservation.Reservation{PathEnd: n.ExpiresAt()}
	r.BuyerID, r.Quantity = p.Buyer.ID, p.Quantity
	refusal, err := s.checks.Do(ctx, batchKey{goodsID: p.GoodsID, epoch: h.epoch},
		tracedReservation{r, order.TraceMark(ctx, s.tracer)})
	if err != nil {
		return apierror.NewUnavailable("the reservation's outcome is unknown", err)
	}
	return refusal
}

// pathMargin is the least time for which the paths of a check must be valid. Redis' clock decides,
// and one expired path leaves a whole batch to Place.
const pathMargin = time.Second

// reservation returns the reservation of a path. A path that is none of ours may be one that an
// earlier release stored in Redis. It gets a new number, which is void unless Redis has the path.
func (s *Service) reservation(p Request) reservation.Reservation {
	now, stored := time.Now(), ""
	n, err := s.keys.VerifyPath(p.Path, p.GoodsID, p.Buyer.ID, now)
	if err != nil {
		n, stored = s.keys.Issue(p.GoodsID, p.Buyer.ID, now), p.Path
	}
	line := reservation.OrderLine{
		OrderSn: n.String(), BuyerID: p.Buyer.ID, Quantity: p.Quantity,
		Name: p.Buyer.Name, Phone: p.Buyer.Phone,
	}
	return reservation.Reservation{OrderLine: line, PathEnd: n.ExpiresAt(), StoredPath: stored}
}

// confirmAgain publishes the order of a repeated path again while it is pending, because the first
// publication may have failed. The writer ignores duplicates. An order that is not pending must
// have a row, because Redis may have lost it after the script answered.
func (s *Service) confirmAgain(
	ctx context.Context, goodsID int64, orderSn string, by time.Time,
) error {
	line, pending, err := s.redis.Pending(ctx, goodsID, orderSn)
	if err != nil {
		return err
	}
	if !pending {
		written, err := s.orders.Written(ctx, goodsID, orderSn)
		if err == nil && !written {
			err = order.ErrNoSuchOrder
		}
		return err
	}
	err = s.publishBy(ctx, goodsID, message.EncodeOrder(goodsID, line), by)
	if errors.Is(err, order.ErrQueueDown) {
		return nil // the outbox alone holds it
	}
	return err
}

// reserve uses the last known epoch, and repeats the call once if Redis has another.
func (s *Service) reserve(
	ctx context.Context, goodsID int64, r reservation.Reservation,
) (result, error) {
	reserveIn := func(epoch int64) (result, error) {
		r.Epoch = epoch
		return s.reserves.Do(ctx, batchKey{goodsID, epoch, r.StoredPath != ""},
			tracedReservation{r, order.TraceMark(ctx, s.tracer)})
	}
	epoch, err := s.epoch(ctx, goodsID, r)
	if err != nil {
		return result{}, err
	}
	got, err := reserveIn(epoch)
	if gate, ok := errors.AsType[*seckill.GateError](err); ok {
		if gate.State == seckill.GateEpoch {
			s.hints.Add(goodsID, hint{epoch: gate.Epoch})
			got, err = reserveIn(gate.Epoch)
		} else {
			s.hints.Remove(goodsID)
			return result{}, s.gateError(ctx, goodsID, r, gate)
		}
	}
	return got, apierror.OrUnavailable(err,
		"the reservation's outcome is unknown; use the same path")
}

// epoch returns the last known epoch of a sale, or reads it; NotFound if there is no such sale.
func (s *Service) epoch(
	ctx context.Context, goodsID int64, r reservation.Reservation,
) (int64, error) {
	if h, ok := s.hints.Get(goodsID); ok {
		return h.epoch, nil
	}
	v, err := s.sale(ctx, goodsID, r)
	if err != nil {
		return 0, err
	}
	if v.Gate != seckill.GateMissing {
		s.hints.Add(goodsID, hint{epoch: v.Epoch})
	}
	return v.Epoch, nil
}

// sale reads the sale of a reservation. A path that an earlier release may have stored proves
// nothing.
func (s *Service) sale(
	ctx context.Context, goodsID int64, r reservation.Reservation,
) (seckill.View, error) {
	if r.StoredPath != "" {
		return s.sales.Sale(ctx, goodsID)
	}
	return s.sales.ExposedSale(ctx, goodsID)
}

// gateError returns the refusal for a shut gate. It is Unavailable while the path may have an order
// in the queue. A sale that is over takes no stored path any more, and once it is retired it has no
// order in the queue. Then the refusal is BadPath for a path that is stored or has expired, and
// Ended for any other: like the script, gateError judges the path before the sale.
func (s *Service) gateError(
	ctx context.Context, goodsID int64, r reservation.Reservation, gate *seckill.GateError,
) error {
	if gate.State == seckill.GateBacklog {
		return apierror.NewUnavailable("orders arrive faster than they are written", gate)
	}
	v, err := s.sale(ctx, goodsID, r)
	if err != nil {
		return err
	}
	over := v.Phase() == seckill.PhaseEnded
	switch {
	case over && (r.StoredPath != "" || v.Retired && !v.Now.Before(r.PathEnd)):
		return reservation.Verdict{Code: reservation.WrongPath}.Err()
	case over && v.Retired:
		return apierror.New(apierror.Ended, "the sale is over")
	}
	return seckill.NewRebuilding(gate)
}

// Metrics counts the calls of the reserve script. One call serves many buyers.
type Metrics interface {
	// Reserved reports one call: the verdicts of its buyers, or no verdicts and the error.
	Reserved(buyers int, verdicts []reservation.Verdict, took time.Duration, err error)
}
