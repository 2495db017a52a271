package metrics

import (
	"sync"
	"time"

	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/waitingroom/admission"
)

// Lines exports sums over the waiting rooms of all sales, and the longest time for which a line
// that may move has not moved.
type Lines struct {
	mu    sync.Mutex
	lines map[int64]*lineSample
}

// lineSample is the last state of one line.
type lineSample struct {
	admission.State
	seenAt   time.Time     // of the last state
	movedAt  time.Time     // of the last move, or the moment since which it may move
	interval time.Duration // between two admissions, by the sale's rate
	mayMove  bool          // somebody waits, and units are left that nobody was promised
}

// lineLife is how long the sums include a line after its last state.
const lineLife = time.Minute

func (r *Registry) newLines() *Lines {
	l := &Lines{lines: make(map[int64]*lineSample)}
	one := func(name, help string, of func(lineSums) float64) {
		// Each scrape takes the sums anew, because the admitter reports no line that is over.
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

// Moved stores a state of a line. admission.Admitter calls it with each.
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

// sums adds up the lines with a state of the last lineLife, and deletes the others.
func (l *Lines) sums(now time.Time) (all lineSums) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, line := range l.lines {
		if now.Sub(line.seenAt) > lineLife {
			delete(l.lines, id)
			continue
		}
		all.joined += line.Joined
		all.waiting += max(0, line.Joined-line.Admitted)
		all.admitted += line.Called
		all.missed += line.Missed
		if line.mayMove {
			all.stalled = max(all.stalled, line.seenAt.Sub(line.movedAt)-line.interval)
		}
	}
	return all
}
