package rebuild

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/livesales"
	"flashsale.dev/seckill/internal/order/outbox"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/reservation"
	"flashsale.dev/seckill/internal/workers"
)

// Metrics receives the result of each rebuild.
type Metrics interface {
	// Result is called after each rebuild that opened a sale again.
	Rebuilt(r Result)
}

// Result is what one rebuild did.
type Result struct {
	GoodsID   int64         `json:"goodsId,string"`
	Why       string        `json:"why"`
	Was       int64         `json:"epochBefore"`
	Epoch     int64         `json:"epochAfter"`
	Available int64         `json:"available"`
	Relayed   int           `json:"relayed"`  // groups out of the outbox that the queue had not confirmed
	Found     int           `json:"found"`    // reservations that were pending, and are in MySQL now
	Lost      int           `json:"lost"`     // reservations that could be written in no form: each a dead letter
	Attempts  int           `json:"attempts"` // how often the sale was drained
	Shut      time.Duration `json:"-"`        // how long its gate stayed shut
}

// Store is MySQL as a rebuild needs it.
type Store interface {
	NextRebuildToken(ctx context.Context, goodsID int64) (int64, error)
	BarrierReached(ctx context.Context, goodsID, epoch, token int64) (bool, error)
	Sale(ctx context.Context, goodsID int64) (seckill.Sale, error)
	StatusOf(ctx context.Context, goodsID int64, sns []string) (map[string]order.Status, error)
	WriteFailed(ctx context.Context, goodsID int64, l reservation.OrderLine, epoch int64, reason order.FailureReason, d order.DeadLetter, now time.Time) (order.Outcome, error)
	AddDeadLetter(ctx context.Context, d order.DeadLetter) error
}

// GateStore is the gate of sales in Redis, and the lock of their rebuilds.
type GateStore interface {
	View(ctx context.Context, goodsID int64) (seckill.View, error)
	// Shut closes the gate, and has every load of an epoch up to the one given refused.
	Shut(ctx context.Context, goodsID, epoch int64) error
	// LockRebuild takes the lock, and keeps it until unlocked; false where another has it. One who died keeps it for life.
	LockRebuild(ctx context.Context, goodsID int64, life time.Duration) (unlock func(), ok bool, err error)
}

// Rebuilder builds sales in Redis again, from MySQL: their state was lost with Redis, or was loaded under a master that
// is none any more. It works under a lock, so that one does it, and under a fencing token that MySQL checks, so that
// one who lost the lock without knowing does no harm.
type Rebuilder struct {
	live      *livesales.List
	store     Store
	gate      GateStore
	relay     *outbox.Relay
	publisher order.Publisher
	opener    *Opener
	deadline  time.Duration
	log       *slog.Logger
	observer  Metrics
	busy      sync.Map // goods ids that are being rebuilt here
}

const (
	// rebuildsAtOnce is how many sales one process rebuilds side by side: most of a rebuild is waiting.
	rebuildsAtOnce = 32

	checkInterval = 200 * time.Millisecond
	barrierPoll   = 20 * time.Millisecond
	// barrierDeadline bounds the wait for the backlog before the barrier; a rebuild that waited in vain begins anew.
	barrierDeadline = 30 * time.Second
	// lockTTL is how long a rebuilder that was killed, or whose Redis was, keeps the others from a sale that stays shut meanwhile.
	lockTTL = 2 * time.Second
	// drains is how often a sale is drained before what is still not written is given up: an order that can be written
	// in no form must not keep a sale shut.
	drains = 3
)

// ErrRebuilding says that another holds the lock of a sale's rebuild.
var ErrRebuilding = errors.New("the sale is being rebuilt already")

// NewRebuilder makes a rebuilder; publishDeadline is the one that every publisher keeps to.
func NewRebuilder(live *livesales.List, store Store, gate GateStore, relay *outbox.Relay, publisher order.Publisher, opener *Opener, observer Metrics, publishDeadline time.Duration, log *slog.Logger) *Rebuilder {
	return &Rebuilder{
		live: live, store: store, gate: gate, relay: relay, publisher: publisher, opener: opener, deadline: publishDeadline, log: log,
		observer: observer,
	}
}

// Run looks at every sale, so that a quiet one is found too, until ctx ends. What it has to rebuild it rebuilds side by
// side, so that no sale waits for another's backlog.
func (r *Rebuilder) Run(ctx context.Context) error {
	var g errgroup.Group
	g.SetLimit(rebuildsAtOnce)
	err := workers.Every(ctx, checkInterval, func(ctx context.Context) { r.runOnce(ctx, &g) })
	return errors.Join(err, g.Wait())
}

func (r *Rebuilder) runOnce(ctx context.Context, g *errgroup.Group) {
	for _, sale := range r.live.Sales() {
		if r.lost(ctx, sale) == "" {
			continue
		}
		if _, busy := r.busy.LoadOrStore(sale.GoodsID, true); busy {
			continue
		}
		begun := g.TryGo(func() error {
			defer r.busy.Delete(sale.GoodsID)
			r.rebuildIfLost(ctx, sale)
			return nil
		})
		if !begun {
			r.busy.Delete(sale.GoodsID)
			return // all hands are busy; the next look finds it again
		}
	}
}

// mend rebuilds a sale that still needs it once the lock is held: another process may have been quicker.
func (r *Rebuilder) rebuildIfLost(ctx context.Context, sale seckill.Sale) {
	why := ""
	err := r.locked(ctx, sale.GoodsID, func() error {
		if why = r.lost(ctx, sale); why == "" {
			return nil
		}
		_, err := r.rebuild(ctx, sale.GoodsID, why)
		return err
	})
	if err != nil && !errors.Is(err, ErrRebuilding) && !errors.Is(err, ErrRetired) && ctx.Err() == nil {
		r.log.ErrorContext(ctx, "rebuild failed, trying again; the sale stays shut", "goods_id", sale.GoodsID, "why", why, "err", err)
	}
}

// lost tells why a sale needs a rebuild, or "" where it does not or Redis can't be asked. A sale that was closed needs it
// too: what is given back to it must find a place.
func (r *Rebuilder) lost(ctx context.Context, sale seckill.Sale) string {
	v, err := r.gate.View(ctx, sale.GoodsID)
	switch {
	case errors.Is(err, seckill.ErrNotLoaded):
		return "redis has lost it"
	case err != nil:
		return ""
	case v.Gate == seckill.GateLease:
		return "redis was restarted or failed over"
	case v.Gate == seckill.GateShut:
		return "a rebuild was left half done"
	case v.Epoch < sale.Epoch:
		return "redis holds an older epoch"
	}
	return ""
}

// Rebuild begins a new epoch of a sale: shut the gate, let publishers finish, drain all that is under way into MySQL,
// and load what MySQL has. ErrRebuilding where another is doing it. How long the gate stays shut is bounded
// by the backlog, and is told.
func (r *Rebuilder) Rebuild(ctx context.Context, goodsID int64, why string) (done Result, err error) {
	err = r.locked(ctx, goodsID, func() error { done, err = r.rebuild(ctx, goodsID, why); return err })
	return done, err
}

// locked works under the lock of a goods' rebuild, or not at all where another has it.
func (r *Rebuilder) locked(ctx context.Context, goodsID int64, work func() error) error {
	unlock, ok, err := r.gate.LockRebuild(ctx, goodsID, lockTTL)
	if err == nil && !ok {
		err = ErrRebuilding
	}
	if err != nil {
		return err
	}
	defer unlock()
	return work()
}

func (r *Rebuilder) rebuild(ctx context.Context, goodsID int64, why string) (Result, error) {
	began, done := time.Now(), Result{GoodsID: goodsID, Why: why}
	r.log.WarnContext(ctx, "rebuilding a sale, its gate is shut", "goods_id", goodsID, "why", why)
	token, err := r.drained(ctx, &done)
	if err != nil {
		return done, err
	}
	sale, err := r.opener.Open(ctx, goodsID, token)
	if err != nil {
		return done, err
	}
	done.Epoch, done.Available, done.Shut = sale.Epoch, sale.Stock, time.Since(began)
	r.log.InfoContext(ctx, "sale rebuilt, its gate is open", "goods_id", goodsID, "epoch", sale.Epoch,
		"available", sale.Stock, "shut_seconds", done.Shut.Seconds(), "lost", done.Lost)
	if r.observer != nil {
		r.observer.Rebuilt(done)
	}
	return done, nil
}

// ErrRetired says that a sale is over for good: Redis need not have it.
var ErrRetired = errors.New("the sale is over for good, there is nothing to rebuild")

// drained drains a sale, each time under a token of its own, until all that was reserved is written or given up. It returns
// the last token.
func (r *Rebuilder) drained(ctx context.Context, done *Result) (int64, error) {
	for done.Attempts = 1; ; done.Attempts++ {
		token, err := r.store.NextRebuildToken(ctx, done.GoodsID)
		if err != nil {
			return 0, fmt.Errorf("take a rebuild token: %w", err)
		}
		missing, err := r.drain(ctx, done, token)
		if err != nil || len(missing) == 0 {
			return token, err
		}
		if done.Attempts == drains {
			return token, r.deadLetterMissing(ctx, done, missing)
		}
		r.log.WarnContext(ctx, "orders are not written though the barrier has passed: draining again", "goods_id", done.GoodsID,
			"orders", len(missing), "order_sn", missing[0].OrderSn)
	}
}
