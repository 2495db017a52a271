package bench

import (
	"slices"
	"testing"
	"time"
)

// measurement is the result of a contender in one round.
type measurement struct {
	done int           // pieces of work
	took time.Duration // without preparations
	cpu  spent         // processor time of the measured processes
}

func (m measurement) perSecond() float64 { return float64(m.done) / m.took.Seconds() }

// each is the processor time of one piece of work, in seconds.
func (m measurement) each() float64 { return m.cpu.all().Seconds() / float64(m.done) }

// contender is one way to do the work.
type contender struct {
	name string
	run  func() measurement
}

// compare lets all contenders work in turn, one round for each operation of the benchmark. The
// first one is ours. It adds a row to the table for each.
func compare(b *testing.B, measure, unit string, all ...contender) {
	b.Helper()
	rounds := make([][]measurement, len(all))
	for round := 0; b.Loop(); round++ {
		for i := range all {
			turn := (i + round) % len(all) // no contender is always the first
			rounds[turn] = append(rounds[turn], all[turn].run())
		}
	}
	b.ReportMetric(0, "ns/op") // the time of a round is no useful figure
	for i, c := range all {
		results.rows = append(results.rows, row{
			measure: measure, unit: unit, contender: c.name, ours: i == 0,
			rate: medianRate(rounds[i]), cpu: cpuEach(rounds[i]),
			ratio:    medianOf(rounds[0], rounds[i], measurement.perSecond),
			cpuRatio: medianOf(rounds[0], rounds[i], measurement.each),
		})
	}
}

func medianRate(rounds []measurement) float64 {
	rates := make([]float64, len(rounds))
	for i, m := range rounds {
		rates[i] = m.perSecond()
	}
	return median(rates)
}

// medianOf is the median ratio of a number between the pairs of all rounds.
func medianOf[T any](ours, floor []T, number func(T) float64) float64 {
	ratios := make([]float64, len(ours))
	for i := range ours {
		ratios[i] = number(ours[i]) / number(floor[i])
	}
	return median(ratios)
}

// cpuEach is the processor time of one piece of work by part, over all rounds.
func cpuEach(rounds []measurement) spent {
	sum, done := spent{}, 0
	for _, m := range rounds {
		sum, done = sum.add(m.cpu), done+m.done
	}
	for part := range sum {
		sum[part] /= time.Duration(max(1, done))
	}
	return sum
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// roundTime is about how long a round of repeated work takes.
const roundTime = 250 * time.Millisecond

// repeat prepares work and does it, again and again, until the work alone has taken a round's time.
// The function work returns how many pieces it did.
func repeat[T any](prepare func() T, work func(T) int, p processes) measurement {
	var m measurement
	for m.took < roundTime {
		ready := prepare()
		began, before := time.Now(), p.read()
		m.done += work(ready)
		m.took, m.cpu = m.took+time.Since(began), m.cpu.add(p.since(before))
	}
	return m
}
