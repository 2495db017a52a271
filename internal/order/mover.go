package order

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"flashsale.dev/seckill/internal/seckill"
)

// MoverShelf is Redis as the mover needs it.
type MoverShelf interface {
	ChangeShelf
	// TellOthers tells a bucket what the others have; ErrNotLoaded where Redis does not have its epoch.
	TellOthers(ctx context.Context, goodsID, epoch, units int64) error
	// TakeTurn takes, or keeps, a sale's turn for a while; false where another has it.
	TakeTurn(ctx context.Context, goodsID int64, holder string, life time.Duration) (bool, error)
}

// Mover carries units between the buckets of split sales, so that none is left where nobody asks for it: what a bucket has
// no more, another's units make good, within a moment after a buyer has asked. No buyer waits for it: he is told to ask again.
// It tells each bucket what the others have, too: only who knows that there is nothing anywhere may say "sold out".
//
// Any number may be at work. They take turns by a lock that saves work and keeps nobody from harm: two who carry at once
// carry twice what is needed, and not a unit more than there is.
type Mover struct {
	live  *Live
	shelf MoverShelf
	carry carrier
	log   *slog.Logger
	me    string
	busy  sync.Map // sales that are being looked at here
	seen  sync.Map // bucket -> units that it had when it answered last
}

const (
	moveEvery = 200 * time.Millisecond
	// turnLife is how long a mover that is heard of no more keeps its turn.
	turnLife = time.Second
	// lookLife bounds a look at a bucket: one whose master is away must not hold up the others.
	lookLife = 500 * time.Millisecond
	// salesAtOnce and carriesAtOnce are how many sales one process looks at, and how many transfers of a sale are under way.
	salesAtOnce   = 16
	carriesAtOnce = 8
)

// NewMover makes a mover.
func NewMover(live *Live, store ChangeStore, shelf MoverShelf, giver *Giver, log *slog.Logger) *Mover {
	return &Mover{
		live: live, shelf: shelf, log: log, me: uuid.NewString(),
		carry: carrier{store: store, shelf: shelf, giver: giver, seen: Unobserved{}, now: time.Now},
	}
}

// ObservedBy has an observer told of every transfer; to be called before anything else.
func (m *Mover) ObservedBy(o Observer) *Mover { m.carry.seen = o; return m }

// Run looks at every split sale until ctx ends, side by side, so that none waits for another's Redis.
func (m *Mover) Run(ctx context.Context) error {
	var g errgroup.Group
	g.SetLimit(salesAtOnce)
	err := every(ctx, moveEvery, func(ctx context.Context) { m.runOnce(ctx, &g) })
	return errors.Join(err, g.Wait())
}

func (m *Mover) runOnce(ctx context.Context, g *errgroup.Group) {
	sales := m.live.Sales()
	totals := totalsOf(sales)
	for _, sale := range sales {
		split := seckill.Buckets(sale.GoodsID) > 1 && !seckill.IsBucket(sale.GoodsID)
		if !split || sale.Status != seckill.Exposed {
			continue
		}
		if _, busy := m.busy.LoadOrStore(sale.GoodsID, true); busy {
			continue
		}
		begun := g.TryGo(func() error {
			defer m.busy.Delete(sale.GoodsID)
			if err := m.Look(ctx, sale.GoodsID, totals[sale.GoodsID]); err != nil && ctx.Err() == nil {
				m.log.WarnContext(ctx, "units are carried between buckets later", "goods_id", sale.GoodsID, "err", err)
			}
			return nil
		})
		if !begun {
			m.busy.Delete(sale.GoodsID)
			return
		}
	}
}

// totalsOf adds up how many units MySQL has put up of each sale. Transfers don't change that.
func totalsOf(sales []seckill.Sale) map[int64]int64 {
	totals := make(map[int64]int64)
	for _, s := range sales {
		totals[seckill.SaleOf(s.GoodsID)] += s.Total
	}
	return totals
}

// Look looks at the buckets of a sale once, tells each what the others have, and carries what is to be carried. It does nothing
// where it is another's turn; where nobody can be asked whose turn it is, it is everybody's.
//
// putUp is how many units there are of the sale as MySQL has it. What Redis has fewer of is in the air, and not sold.
func (m *Mover) Look(ctx context.Context, goodsID, putUp int64) error {
	if mine, err := m.shelf.TakeTurn(ctx, goodsID, m.me, turnLife); err == nil && !mine {
		return nil
	}
	open, total := m.look(ctx, goodsID, putUp)
	err := m.tell(ctx, open, total)
	if len(open) == 0 || open[0].PhaseAt(open[0].Now, 1) == seckill.PhaseEnded {
		return err
	}
	return errors.Join(err, m.move(ctx, open))
}

// look reads the buckets of a sale: those that are open, and how many units there are in all, those in the air with them. One
// that does not answer, or that Redis has lost, has what it had before.
func (m *Mover) look(ctx context.Context, goodsID, putUp int64) (open []seckill.View, total int64) {
	ids := seckill.BucketsOf(goodsID)
	views, errs := make([]seckill.View, len(ids)), make([]error, len(ids))
	ctx, cancel := context.WithTimeout(ctx, lookLife)
	defer cancel()
	var g errgroup.Group
	g.SetLimit(bucketsAtOnce)
	for i, id := range ids {
		g.Go(func() error {
			views[i], errs[i] = m.shelf.View(ctx, id)
			return nil
		})
	}
	_ = g.Wait() // each look's error is in its place
	all := true
	for i, v := range views {
		if all = all && errs[i] == nil; errs[i] != nil {
			had, _ := m.seen.LoadOrStore(ids[i], int64(0))
			total += had.(int64)
			continue
		}
		m.seen.Store(ids[i], v.Available)
		putUp -= v.Total
		if total += v.Available; v.Gate == seckill.GateOpen {
			open = append(open, v)
		}
	}
	if all {
		total += max(0, putUp)
	}
	return open, total
}

// tell tells the buckets what the others have, where that is not what they think.
func (m *Mover) tell(ctx context.Context, buckets []seckill.View, total int64) error {
	var err error
	for _, v := range buckets {
		others := total - v.Available
		if others == v.Others {
			continue
		}
		if e := m.shelf.TellOthers(ctx, v.GoodsID, v.Epoch, others); !errors.Is(e, seckill.ErrNotLoaded) {
			err = errors.Join(err, e)
		}
	}
	return err
}

// move carries what spread has planned.
func (m *Mover) move(ctx context.Context, buckets []seckill.View) error {
	var g errgroup.Group
	g.SetLimit(carriesAtOnce)
	for _, t := range spread(buckets) {
		from, to := buckets[t.from], buckets[t.to]
		g.Go(func() error {
			done, err := m.carry.carry(ctx, from, to.GoodsID, t.units)
			m.log.DebugContext(ctx, "carried units", "goods_id", from.GoodsID, "to_goods_id", to.GoodsID, "units", t.units, "done", done)
			return err
		})
	}
	return g.Wait()
}
