package bench

import (
	"slices"
	"testing"
	"time"
)

// lap is what a contestant did in one go.
type lap struct {
	done int           // pieces of work
	took time.Duration // for them alone; preparations are not in it
	cpu  time.Duration // processor time of the process that is measured; 0 where none is
}

func (l lap) perSecond() float64 { return float64(l.done) / l.took.Seconds() }

// contestant does the same work as its rivals, its own way.
type contestant struct {
	name string
	run  func() lap
}

// duel has ours and its floors run laps in turn, a round for each operation of the benchmark, and keeps the medians.
func duel(b *testing.B, measure, unit string, ours contestant, floors ...contestant) {
	b.Helper()
	all := append([]contestant{ours}, floors...)
	laps := make([][]lap, len(all))
	for round := 0; b.Loop(); round++ {
		for i := range all {
			turn := (i + round) % len(all) // so that no one always comes first
			laps[turn] = append(laps[turn], all[turn].run())
		}
	}
	b.ReportMetric(0, "ns/op") // of a round: it says nothing
	b.ReportMetric(median(rates(laps[0])), unit+"/s")
	for i, floor := range floors {
		r := compare(laps[0], laps[i+1])
		r.measure, r.unit, r.floor = measure, unit, floor.name
		b.ReportMetric(r.ratio, "of-"+dashed(floor.name))
		results.rows = append(results.rows, r)
	}
}

// compare pairs the laps of each round.
func compare(ours, floor []lap) row {
	ratios := make([]float64, len(ours))
	for i := range ours {
		ratios[i] = ours[i].perSecond() / floor[i].perSecond()
	}
	return row{
		oursRate: median(rates(ours)), floorRate: median(rates(floor)), ratio: median(ratios),
		oursCPU: cpuEach(ours), floorCPU: cpuEach(floor), rounds: len(ours),
	}
}

func rates(laps []lap) []float64 {
	list := make([]float64, len(laps))
	for i, l := range laps {
		list[i] = l.perSecond()
	}
	return list
}

// cpuEach is the processor time of one piece of work, over all laps.
func cpuEach(laps []lap) time.Duration {
	var cpu time.Duration
	done := 0
	for _, l := range laps {
		cpu, done = cpu+l.cpu, done+l.done
	}
	return cpu / time.Duration(max(1, done))
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 0 {
		return (sorted[middle-1] + sorted[middle]) / 2
	}
	return sorted[middle]
}

// lapTime is about how long a lap of repeated work takes.
const lapTime = 250 * time.Millisecond

// repeat prepares work and does it, again and again, until the work alone has taken a lap's time. work returns how many pieces
// it did; cpu may be nil.
func repeat[T any](prepare func() T, work func(T) int, cpu func() time.Duration) lap {
	var l lap
	for l.took < lapTime {
		ready := prepare()
		began, spent := time.Now(), now(cpu)
		l.done += work(ready)
		l.took, l.cpu = l.took+time.Since(began), l.cpu+now(cpu)-spent
	}
	return l
}

func now(cpu func() time.Duration) time.Duration {
	if cpu == nil {
		return 0
	}
	return cpu()
}
