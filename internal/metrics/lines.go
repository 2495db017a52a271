package metrics

import (
	"sync"
	"time"

	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/waitingroom/admission"
)

// Lines exports the waiting rooms of all sales as sums, and for how long a line has stood still.
type Lines struct {
	mu    sync.Mutex
	lines map[int64]*lineSample
}

// lineSample is the last state of one line.
type lineSample struct {
	admission.State
	seenAt, movedAt time.Time
	interval        time.Duration // between two admissions, by the sale's rate
	mayMove         bool
}

// lineLife is how long a line that is not seen again counts.
const lineLife = time.Minute

func (r *Registry) newLines() *Lines {
	l := &Lines{lines: make(map[int64]*lineSample)}
	one := func(name, help string, of func(lineSums) float64) {
		// The sums are taken at each scrape, because nobody reports a line that is over.
		r.gaugeFunc(name, help, func() float64 { return of(l.sums(time.Now())) })
	}
	one("waiting_room_joined", "Numbers handed out in all waiting rooms, with the gaps that a "+
		"loss of Redis leaves.",
		func(s lineSums) float64 { return float64(s.joined) })
	one("waiting_room_waiting", "Places in all waiting rooms that were not called.",
		func(s lineSums) float64 { return float64(s.waiting) })
	one("waiting_room_admitted", "Admissions that are neither used nor over.",
		func(s lineSums) float64 { return float64(s.admitted) })
	one("waiting_room_missed", "Admissions that ended before they were used.",
		func(s lineSums) float64 { return float64(s.missed) })
	one("waiting_room_stalled_seconds", "The longest time for which a line has not "+
		"moved although it may: somebody waits, and units are on sale that nobody was promised.",
		func(s lineSums) float64 { return s.stalled.Seconds() })
	return l
}

// Moved is called by admission.Admitter with each state of a line.
func (l *Lines) Moved(sale seckill.Sale, s admission.State) { l.moved(sale, s, time.Now()) }

func (l *Lines) moved(sale seckill.Sale, s admission.State, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	line := l.lines[sale.GoodsID]
	may := s.Seed != "" && !s.Now.Before(sale.StartAt) && s.Now.Before(sale.EndAt) &&
		s.Joined > s.Admitted && s.Available > s.Called*sale.PerBuyerLimit
	if line == nil || !line.mayMove || line.Admitted != s.Admitted {
		line = &lineSample{movedAt: now}
		l.lines[sale.GoodsID] = line
	}
	line.State, line.seenAt, line.mayMove = s, now, may
	line.interval = time.Duration(float64(time.Second) / sale.Rate.PermitsPerSecond)
}

// lineSums are the sums of all lines, and the longest stall.
type lineSums struct {
	joined, waiting, admitted, missed int64
	stalled                           time.Duration
}

// sums adds the lines up that were seen lately, and forgets the others.
func (l *Lines) sums(now time.Time) (all lineSums) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, of := range l.lines {
		if now.Sub(of.seenAt) > lineLife {
			delete(l.lines, id)
			continue
		}
		all.joined, all.waiting = all.joined+of.Joined, all.waiting+max(0, of.Joined-of.Admitted)
		all.admitted, all.missed = all.admitted+of.Called, all.missed+of.Missed
		if of.mayMove {
			all.stalled = max(all.stalled, of.seenAt.Sub(of.movedAt)-of.interval)
		}
	}
	return all
}
