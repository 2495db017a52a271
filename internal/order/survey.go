package order

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"flashsale.dev/seckill/internal/seckill"
)

// Survey is how the sales that are looked after stand at one moment.
type Survey struct {
	Sales       []SaleSurvey // the newest first
	DeadLetters int64        // that wait for an operator
	Memory      Memory       // of Redis
	Took        time.Duration
}

// Memory is what Redis uses of what it may.
type Memory struct {
	Used int64 // bytes
	Most int64 // bytes; 0: as much as the machine has
}

// SaleSurvey is one sale. What Redis did not tell is zero.
type SaleSurvey struct {
	GoodsID int64
	Gate    seckill.GateState
	OnSale  bool // exposed and not over: its gate should be open
	Ledger  seckill.Ledger

	Accounted  bool          // the ledger could be read
	Outbox     int64         // entries
	OutboxAge  time.Duration // of the oldest
	PendingAge time.Duration // since a moment before which nothing is pending
}

// Difference is how many units are in no place, or in two: |total − available − pending − sold|.
func (s SaleSurvey) Difference() int64 {
	d := s.Ledger.Total - s.Ledger.Available - s.Ledger.Pending - s.Ledger.Sold
	return max(d, -d)
}

// Oversold is how many units MySQL has sold beyond the total.
func (s SaleSurvey) Oversold() int64 { return max(0, s.Ledger.Database.Active-s.Ledger.Total) }

// SurveyObserver hears of every survey.
type SurveyObserver interface {
	Surveyed(s Survey)
}

// SurveyStore is MySQL as a survey needs it.
type SurveyStore interface {
	CountDeadLetters(ctx context.Context) (int64, error)
}

// SurveyShelf is Redis as a survey needs it.
type SurveyShelf interface {
	View(ctx context.Context, goodsID int64) (seckill.View, error)
	Memory(ctx context.Context) (Memory, error)
}

// Surveyor looks over all sales now and then, so that what stands still is seen as well as what moves. Every process with
// a crew surveys the same sales: of several answers the highest counts.
type Surveyor struct {
	live     *Live
	store    SurveyStore
	shelf    SurveyShelf
	auditor  *Auditor
	observer SurveyObserver
	log      *slog.Logger
	dead     int64 // letters, when they were counted last
}

const (
	surveyEvery = 2 * time.Second
	// surveyRest is how many times its own duration a survey rests at least: sums over many orders must not load MySQL.
	surveyRest = 20
	// surveyPatience bounds each question to MySQL.
	surveyPatience = 2 * time.Second
)

// NewSurveyor makes a surveyor.
func NewSurveyor(live *Live, store SurveyStore, shelf SurveyShelf, auditor *Auditor, observer SurveyObserver, log *slog.Logger) *Surveyor {
	return &Surveyor{live: live, store: store, shelf: shelf, auditor: auditor, observer: observer, log: log}
}

// Run surveys until ctx ends.
func (s *Surveyor) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		took := s.runOnce(ctx)
		sleep(ctx, max(surveyEvery, surveyRest*took))
	}
	return nil
}

// runOnce tells the observer nothing where Redis can't be asked, about any sale: what was seen last grows old, which is seen too. Where
// MySQL can't, the backlog is told all the same, for that is when it grows; ledgers are not, and the dead letters are
// those that were counted last.
func (s *Surveyor) runOnce(ctx context.Context) time.Duration {
	began := time.Now()
	found, err := s.sales(ctx)
	if err == nil {
		found.Memory, err = s.shelf.Memory(ctx)
	}
	if found.accountable {
		s.countDead(ctx)
	}
	found.DeadLetters, found.Took = s.dead, time.Since(began)
	if err == nil {
		s.observer.Surveyed(found.Survey)
	} else if ctx.Err() == nil {
		s.log.WarnContext(ctx, "can't look over the sales, trying again", "err", err)
	}
	return found.Took
}

// survey is one under way.
type survey struct {
	Survey
	accountable bool // MySQL has answered so far
}

func (s *Surveyor) sales(ctx context.Context) (survey, error) {
	found := survey{accountable: true}
	sales := s.live.Sales()
	slices.SortFunc(sales, func(a, b seckill.Sale) int { return cmp.Compare(b.GoodsID, a.GoodsID) })
	var away error
	var seen bool
	var waited time.Duration
	for _, sale := range sales {
		began := time.Now()
		one, err := s.look(ctx, sale)
		if seen = seen || err == nil; err != nil {
			away, waited = err, waited+time.Since(began)
		}
		if waited > surveyPatience {
			return found, err
		}
		if found.accountable && one.Gate == seckill.GateOpen {
			found.accountable = s.account(ctx, sale, &one)
		}
		found.Sales = append(found.Sales, one)
	}
	if !seen {
		return found, away
	}
	return found, nil
}

// look reads one sale in Redis. That Redis has lost it is a finding and no error. Beside an error it is what is known where other
// sales can be looked at: of a cluster, this one's master is away, and it is not on sale.
func (s *Surveyor) look(ctx context.Context, sale seckill.Sale) (SaleSurvey, error) {
	found := SaleSurvey{GoodsID: sale.GoodsID, OnSale: sale.Status == seckill.Exposed && time.Now().Before(sale.EndAt)}
	v, err := s.shelf.View(ctx, sale.GoodsID)
	if errors.Is(err, seckill.ErrNotLoaded) {
		found.Gate = seckill.GateMissing
		return found, nil
	}
	if err != nil {
		found.Gate = seckill.GateMissing
		return found, err
	}
	found.Gate, found.Outbox = v.Gate, v.Outbox
	found.Ledger = seckill.Ledger{Total: v.Total, Available: v.Available, Pending: v.Pending, Sold: v.Sold, Epoch: v.Epoch}
	if v.Outbox > 0 && !v.OldestAt.IsZero() {
		found.OutboxAge = max(0, v.Now.Sub(v.OldestAt))
	}
	if v.Pending > 0 {
		found.PendingAge = max(0, v.Now.Sub(v.PendingSince))
	}
	return found, nil
}

// account reads the ledger of a goods, and tells whether MySQL answers. A sale whose gate was shut a moment ago has none.
func (s *Surveyor) account(ctx context.Context, sale seckill.Sale, found *SaleSurvey) bool {
	ctx, cancel := context.WithTimeout(ctx, surveyPatience)
	defer cancel()
	ledger, err := s.auditor.Ledger(ctx, sale)
	if err == nil {
		found.Ledger, found.Accounted = ledger, true
	}
	return ctx.Err() == nil && !errors.Is(err, ErrTryAgain)
}

func (s *Surveyor) countDead(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, surveyPatience)
	defer cancel()
	if n, err := s.store.CountDeadLetters(ctx); err == nil {
		s.dead = n
	}
}
