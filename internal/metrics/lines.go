package metrics

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/waitingroom/admission"
)

// Lines exports the waiting rooms of all sales as sums, and for how long a line has stood still.
type Lines struct {
	joined, waiting, admitted, missed, stalled prometheus.Gauge

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
	one := func(name, help string) prometheus.Gauge { return r.gauges(name, help).WithLabelValues() }
	return &Lines{
		joined:   one("waiting_room_joined", "Numbers handed out in all waiting rooms."),
		waiting:  one("waiting_room_waiting", "Places in all waiting rooms that were not called."),
		admitted: one("waiting_room_admitted", "Admissions that are neither used nor over."),
		missed:   one("waiting_room_missed", "Admissions that ended before they were used."),
		stalled: one("waiting_room_stalled_seconds", "The longest time for which a line has not "+
			"moved although it may: somebody waits, and units are on sale that nobody was promised."),
		lines: make(map[int64]*lineSample),
	}
}

// Moved is called by admission.Admitter with each state of a line.
func (l *Lines) Moved(sale seckill.Sale, s admission.State) { l.moved(sale, s, time.Now()) }

func (l *Lines) moved(sale seckill.Sale, s admission.State, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	line := l.lines[sale.GoodsID]
	may := s.Seed != "" && s.Joined > s.Admitted && s.Available > s.Called*sale.PerBuyerLimit
	if line == nil || !line.mayMove || line.Admitted != s.Admitted {
		line = &lineSample{movedAt: now}
		l.lines[sale.GoodsID] = line
	}
	line.State, line.seenAt, line.mayMove = s, now, may
	line.interval = time.Duration(float64(time.Second) / sale.Rate.PermitsPerSecond)
	var joined, waiting, admitted, missed int64
	stalled := time.Duration(0)
	for id, of := range l.lines {
		if now.Sub(of.seenAt) > lineLife {
			delete(l.lines, id)
			continue
		}
		joined, waiting = joined+of.Joined, waiting+max(0, of.Joined-of.Admitted)
		admitted, missed = admitted+of.Called, missed+of.Missed
		if of.mayMove {
			stalled = max(stalled, of.seenAt.Sub(of.movedAt)-of.interval)
		}
	}
	l.joined.Set(float64(joined))
	l.waiting.Set(float64(waiting))
	l.admitted.Set(float64(admitted))
	l.missed.Set(float64(missed))
	l.stalled.Set(stalled.Seconds())
}
