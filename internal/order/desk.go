package order

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"flashsale.dev/seckill/internal/group"
	"flashsale.dev/seckill/internal/ordersn"
	"flashsale.dev/seckill/internal/seckill"
)

// Purchase is one buyer's wish to buy.
type Purchase struct {
	GoodsID  int64
	Buyer    seckill.Actor
	Path     string // 32 lower-case hex digits
	Quantity int64  // 1 to seckill.MaxQuantity
}

// Reserver takes units in Redis.
type Reserver interface {
	// Reserve judges up to seckill.MaxGroup reservations in one atomic step; a *seckill.GateError took nothing.
	Reserve(ctx context.Context, goodsID, epoch int64, rs []seckill.Reservation) (seckill.Group, error)
	// Confirmed removes outbox entries that the queue keeps.
	Confirmed(ctx context.Context, goodsID int64, ids ...string) error
	Promises
}

// Front reads a sale as Redis has it, with its epoch; seckill.Front is one.
type Front interface {
	Sale(ctx context.Context, goodsID int64) (seckill.View, error)
}

// Desk takes purchases: reserve, publish, answer. Buyers of one goods who meet share one script call, and their orders
// one message with one confirm. It is safe for concurrent use.
type Desk struct {
	front     Front
	reserver  Reserver
	publisher Publisher
	minter    *ordersn.Minter
	log       *slog.Logger
	deadline  time.Duration
	observer  DeskObserver
	tracer    Tracer

	tally    *Tally   // nil: nobody counts
	epochs   sync.Map // goods id -> epoch last seen; a wrong one costs a second trip, nothing else
	reserves *group.Line[deskKey, wish, placed]
	confirms *group.Line[int64, string, struct{}]
}

type deskKey struct{ goodsID, epoch int64 }

// placed is what one trip brought one buyer: a verdict, and for what it took the publication that carries it.
type placed struct {
	seckill.Verdict
	publication *publication
	unsure      error // why it must not be promised yet; nil where it may
}

// redisDeadline bounds one trip to Redis. Beyond it the outcome is unknown.
const redisDeadline = 2 * time.Second

// NewDesk makes the desk. publishDeadline bounds the wait for a confirm: what is not confirmed by then is the relay's.
func NewDesk(front Front, reserver Reserver, publisher Publisher, minter *ordersn.Minter, publishDeadline time.Duration, log *slog.Logger) *Desk {
	d := &Desk{front: front, reserver: reserver, publisher: publisher, minter: minter, deadline: publishDeadline, log: log}
	d.observer, d.tracer = unobserved{}, untraced{}
	d.reserves = group.New(seckill.MaxGroup, d.reserveTrip)
	d.confirms = group.New(seckill.MaxGroup, d.confirmTrip)
	return d
}

// Counting has the desk count its orders, and returns it.
func (d *Desk) Counting(t *Tally) *Desk {
	d.tally = t
	return d
}

// Place reserves and hands over one purchase, and returns its order number: of a new order, or of the one that the path
// has stood for before. Any other outcome is a refusal. Once it has been taken, an order goes its way whether the
// caller waits or not.
func (d *Desk) Place(ctx context.Context, p Purchase) (string, error) {
	got, err := d.reserve(ctx, p)
	if err != nil {
		return "", err
	}
	if err := got.Err(); err != nil {
		return "", err
	}
	if got.unsure != nil { // it has been taken and goes its way; only the promise must wait
		return "", seckill.Down("the reservation is not safe yet; ask again with the same path", got.unsure)
	}
	switch {
	case got.publication != nil:
		err = got.publication.wait(ctx)
	case got.Code == seckill.Repeated:
		err = d.confirmAgain(ctx, p.GoodsID, got.OrderSn)
	}
	if err != nil {
		return "", seckill.Down("the order was not confirmed in time; ask again with the same path", err)
	}
	return got.OrderSn, nil
}

// confirmAgain makes sure that an order which a path has stood for before is in the queue, if it is not in MySQL yet: the
// first ask may have been told that it was not. What the queue gets twice is written once.
func (d *Desk) confirmAgain(ctx context.Context, goodsID int64, orderSn string) error {
	line, pending, err := d.reserver.Pending(ctx, goodsID, orderSn)
	if err != nil || !pending {
		return err
	}
	entry, err := EncodeLine(line)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, d.deadline)
	defer cancel()
	err = d.publisher.Publish(ctx, goodsID, EncodeOrders(goodsID, JoinEntries([][]byte{entry})))
	if errors.Is(err, ErrQueueDown) {
		return nil // the outbox alone carries it
	}
	return err
}

// reserve asks under the epoch last seen, and once more where Redis has another.
func (d *Desk) reserve(ctx context.Context, p Purchase) (placed, error) {
	epoch, err := d.epoch(ctx, p.GoodsID)
	if err != nil {
		return placed{}, err
	}
	got, err := d.reserveUnder(ctx, p, epoch)
	if gate, ok := errors.AsType[*seckill.GateError](err); ok {
		if gate.State == seckill.GateEpoch {
			d.epochs.Store(p.GoodsID, gate.Epoch)
			got, err = d.reserveUnder(ctx, p, gate.Epoch)
		} else {
			d.epochs.Delete(p.GoodsID)
			return placed{}, d.shut(ctx, p.GoodsID, gate)
		}
	}
	if err != nil && seckill.ReasonOf(err) == "" {
		return placed{}, seckill.Down("the reservation's outcome is unknown; ask again with the same path", err)
	}
	return got, err
}

// epoch is the one last seen of a goods, or what Redis has now; NotFound where there is no such sale.
func (d *Desk) epoch(ctx context.Context, goodsID int64) (int64, error) {
	if epoch, ok := d.epochs.Load(goodsID); ok {
		return epoch.(int64), nil
	}
	v, err := d.front.Sale(ctx, goodsID)
	if err != nil {
		return 0, err
	}
	if v.Gate != seckill.GateMissing {
		d.epochs.Store(goodsID, v.Epoch)
	}
	return v.Epoch, nil
}

// shut says what a shut gate means to the buyer: a sale that is over has ended, any other is being rebuilt.
func (d *Desk) shut(ctx context.Context, goodsID int64, gate *seckill.GateError) error {
	if gate.State == seckill.GateBacklog {
		return seckill.Down("orders are being written more slowly than they come", gate)
	}
	v, err := d.front.Sale(ctx, goodsID)
	if err != nil {
		return err
	}
	if v.PhaseAt(v.Now, v.Available) == seckill.PhaseEnded {
		return seckill.Refuse(seckill.Ended, "the sale is over")
	}
	return seckill.Rebuilding(gate)
}

func (d *Desk) reserveUnder(ctx context.Context, p Purchase, epoch int64) (placed, error) {
	sn, err := d.minter.Mint(p.GoodsID, epoch)
	if err != nil {
		return placed{}, err
	}
	line := seckill.Line{OrderSn: sn, BuyerID: p.Buyer.ID, Quantity: p.Quantity, Name: p.Buyer.Name, Phone: p.Buyer.Phone}
	return d.reserves.Do(ctx, deskKey{p.GoodsID, epoch}, wish{seckill.Reservation{Line: line, Path: p.Path}, d.tracer.Mark(ctx)})
}
