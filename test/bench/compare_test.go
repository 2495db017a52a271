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
	cpu  time.Duration // processor time of the measured process; 0 if there is none
}

func (m measurement) perSecond() float64 { return float64(m.done) / m.took.Seconds() }

// contender is one way to do the work.
type contender struct {
	name string
	run  func() measurement
}

// compare lets ours and its floors work in turn, one round for each operation of the benchmark.
// It reports medians and adds a row to the table for each floor.
func compare(b *testing.B, measure, unit string, ours contender, floors ...contender) {
	b.Helper()
	all := append([]contender{ours}, floors...)
	rounds := make([][]measurement, len(all))
	for round := 0; b.Loop(); round++ {
		for i := range all {
			turn := (i + round) % len(all) // no contender is always the first
			rounds[turn] = append(rounds[turn], all[turn].run())
		}
	}
	b.ReportMetric(0, "ns/op") // the time of a round is no useful figure
	for i, floor := range floors {
		results.rows = append(results.rows, row{
			measure: measure, unit: unit, floor: floor.name,
			oursRate: medianRate(rounds[0]), floorRate: medianRate(rounds[i+1]),
			ratio:   medianOf(rounds[0], rounds[i+1], measurement.perSecond),
			oursCPU: cpuEach(rounds[0]), floorCPU: cpuEach(rounds[i+1]),
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

// cpuEach is the processor time of one piece of work, over all rounds.
func cpuEach(rounds []measurement) time.Duration {
	var cpu time.Duration
	done := 0
	for _, m := range rounds {
		cpu, done = cpu+m.cpu, done+m.done
	}
	return cpu / time.Duration(max(1, done))
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
func repeat[T any](prepare func() T, work func(T) int, cpu func() time.Duration) measurement {
	var m measurement
	for m.took < roundTime {
		ready := prepare()
		began, spent := time.Now(), cpu()
		m.done += work(ready)
		m.took, m.cpu = m.took+time.Since(began), m.cpu+cpu()-spent
	}
	return m
}
