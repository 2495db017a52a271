package purchase

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"flashsale.dev/seckill/internal/batcher"
	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/stats"
	"flashsale.dev/seckill/internal/ordersn"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/reservation"
)

// Request is one buyer's wish to buy.
type Request struct {
	GoodsID  int64
	Buyer    seckill.Actor
	Path     string // 32 lower-case hex digits
	Quantity int64  // 1 to seckill.MaxPerBuyerLimit
}

// ReservationStore takes units in Redis.
type ReservationStore interface {
	// Reserve judges up to reservation.MaxBatch reservations in one atomic step; a *seckill.GateError took nothing.
	Reserve(ctx context.Context, goodsID, epoch int64, rs []reservation.Reservation) (reservation.Result, error)
	// Confirmed removes outbox entries that the queue keeps.
	Confirmed(ctx context.Context, goodsID int64, ids ...string) error
	// Pending finds a reservation that MySQL may not have yet.
	Pending(ctx context.Context, goodsID int64, orderSn string) (reservation.OrderLine, bool, error)
}

// Service takes purchases: reserve, publish, answer. A buyer of a split sale buys from his own bucket, which is a goods like any
// other from there on. Buyers of one goods who meet travel in one script call, and their
// orders in one message with one confirm. It is safe for concurrent use.
type Service struct {
	sales     order.SaleReader
	reserver  ReservationStore
	publisher order.Publisher
	minter    *ordersn.Minter
	log       *slog.Logger
	deadline  time.Duration
	observer  Metrics
	tracer    order.Tracer

	counters *stats.Counters // nil: nobody counts
	epochs   sync.Map        // goods id -> epoch last seen; a wrong one costs a second trip, nothing else
	reserves *batcher.Batcher[batchKey, tracedReservation, result]
	confirms *batcher.Batcher[int64, string, struct{}]
}

type batchKey struct{ goodsID, epoch int64 }

// result is what one trip brought one buyer: a verdict, and for what it took the publication that carries it.
type result struct {
	reservation.Verdict
	publication   *publication
	notReplicated error // why it must not be promised yet; nil where it may
}

// NewService makes the desk. publishDeadline bounds the wait for a confirm: what is not confirmed by then is the relay's.
func NewService(
	front order.SaleReader, reserver ReservationStore, publisher order.Publisher, minter *ordersn.Minter, tally *stats.Counters,
	observer Metrics, tracer order.Tracer, publishDeadline time.Duration, log *slog.Logger,
) *Service {
	d := &Service{
		sales: front, reserver: reserver, publisher: publisher, minter: minter, deadline: publishDeadline, log: log,
		counters: tally, observer: observer, tracer: tracer,
	}
	d.reserves = batcher.New(reservation.MaxBatch, d.reserveBatch)
	d.confirms = batcher.New(reservation.MaxBatch, d.confirmBatch)
	return d
}

// Place reserves and hands over one purchase, and returns its order number: of a new order, or of the one that the path
// has stood for before. Any other outcome is a refusal. Once it has been taken, an order goes its way whether the
// caller waits or not.
func (d *Service) Place(ctx context.Context, p Request) (string, error) {
	got, err := d.reserve(ctx, p)
	if err != nil {
		return "", err
	}
	if err := got.Err(); err != nil {
		return "", err
	}
	if got.notReplicated != nil { // it has been taken and goes its way; only the promise must wait
		return "", seckill.NewUnavailable("the reservation is not safe yet; ask again with the same path", got.notReplicated)
	}
	switch {
	case got.publication != nil:
		err = got.publication.wait(ctx)
	case got.Code == reservation.Repeated:
		err = d.confirmAgain(ctx, p.GoodsID, got.OrderSn)
	}
	if err != nil {
		return "", seckill.NewUnavailable("the order was not confirmed in time; ask again with the same path", err)
	}
	return got.OrderSn, nil
}

// confirmAgain makes sure that an order which a path has stood for before is in the queue, if it is not in MySQL yet: the
// first ask may have been told that it was not. What the queue gets twice is written once.
func (d *Service) confirmAgain(ctx context.Context, goodsID int64, orderSn string) error {
	line, pending, err := d.reserver.Pending(ctx, goodsID, orderSn)
	if err != nil || !pending {
		return err
	}
	entry, err := order.EncodeLine(line)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, d.deadline)
	defer cancel()
	err = d.publisher.Publish(ctx, goodsID, order.EncodeOrders(goodsID, order.JoinEntries([][]byte{entry})))
	if errors.Is(err, order.ErrQueueDown) {
		return nil // the outbox alone carries it
	}
	return err
}

// reserve asks under the epoch last seen, and once more where Redis has another.
func (d *Service) reserve(ctx context.Context, p Request) (result, error) {
	epoch, err := d.epoch(ctx, p.GoodsID)
	if err != nil {
		return result{}, err
	}
	got, err := d.reserveUnder(ctx, p, epoch)
	if gate, ok := errors.AsType[*seckill.GateError](err); ok {
		if gate.State == seckill.GateEpoch {
			d.epochs.Store(p.GoodsID, gate.Epoch)
			got, err = d.reserveUnder(ctx, p, gate.Epoch)
		} else {
			d.epochs.Delete(p.GoodsID)
			return result{}, d.gateError(ctx, p.GoodsID, gate)
		}
	}
	if err != nil && seckill.ReasonOf(err) == "" {
		return result{}, seckill.NewUnavailable("the reservation's outcome is unknown; ask again with the same path", err)
	}
	return got, err
}

// epoch is the one last seen of a goods, or what Redis has now; NotFound where there is no such sale.
func (d *Service) epoch(ctx context.Context, goodsID int64) (int64, error) {
	if epoch, ok := d.epochs.Load(goodsID); ok {
		return epoch.(int64), nil
	}
	v, err := d.sales.Sale(ctx, goodsID)
	if err != nil {
		return 0, err
	}
	if v.Gate != seckill.GateMissing {
		d.epochs.Store(goodsID, v.Epoch)
	}
	return v.Epoch, nil
}

// shut says what a shut gate means to the buyer: a sale that is over has ended, any other is being rebuilt.
func (d *Service) gateError(ctx context.Context, goodsID int64, gate *seckill.GateError) error {
	if gate.State == seckill.GateBacklog {
		return seckill.NewUnavailable("orders are being written more slowly than they come", gate)
	}
	v, err := d.sales.Sale(ctx, goodsID)
	if err != nil {
		return err
	}
	if v.PhaseAt(v.Now, v.Available) == seckill.PhaseEnded {
		return seckill.NewError(seckill.Ended, "the sale is over")
	}
	return seckill.NewRebuilding(gate)
}

func (d *Service) reserveUnder(ctx context.Context, p Request, epoch int64) (result, error) {
	sn, err := d.minter.Mint(p.GoodsID, epoch)
	if err != nil {
		return result{}, err
	}
	line := reservation.OrderLine{OrderSn: sn, BuyerID: p.Buyer.ID, Quantity: p.Quantity, Name: p.Buyer.Name, Phone: p.Buyer.Phone}
	return d.reserves.Do(ctx, batchKey{p.GoodsID, epoch}, tracedReservation{reservation.Reservation{OrderLine: line, Path: p.Path}, order.TraceMark(ctx, d.tracer)})
}

// Metrics hears of the desk's trips to Redis: each carries many buyers, so that it costs none of them much.
type Metrics interface {
	// Reserved hears what each of a trip's buyers was told, or, with no verdicts, why all of them were told nothing.
	Reserved(buyers int, verdicts []reservation.Verdict, took time.Duration, err error)
}
