package app

import (
	"context"
	"math"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// softMemory is what a node may take before the collector works more often than usual: enough for some 2,000 connections.
	softMemory = 100 << 20
	// memoryTick is how often a node looks at its memory.
	memoryTick = time.Second
	// calmAfter is how many looks without a collection make a calm.
	calmAfter = 10
)

// Memory keeps a node small around its peaks. Left alone, Go lets a heap grow to twice what lives in it, and takes minutes
// to give back what a rush needed. So there is a soft limit, which follows what lives and never squeezes it (Go's own limit stands
// still, and a node with many connections would do nothing but collect); and when the rush is over, what is free is given
// back at once. An operator's GOMEMLIMIT is left as it is.
type Memory struct{}

// Run looks on until ctx ends.
func (Memory) Run(ctx context.Context) error {
	limited := debug.SetMemoryLimit(-1) != math.MaxInt64
	if !limited {
		defer debug.SetMemoryLimit(math.MaxInt64)
	}
	tick := time.NewTicker(memoryTick)
	defer tick.Stop()
	var c calm
	for {
		live, cycles := readMemory()
		if !limited {
			debug.SetMemoryLimit(memoryLimit(live))
		}
		if c.sets(cycles) {
			debug.FreeOSMemory()
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// readMemory returns what lived at the last collection, in bytes, and how many collections there were that nobody forced.
func readMemory() (live, cycles uint64) {
	samples := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/cycles/automatic:gc-cycles"}}
	metrics.Read(samples)
	return samples[0].Value.Uint64(), samples[1].Value.Uint64()
}

// memoryLimit leaves what lives room for three quarters more, which costs about as much collecting as Go's usual one half more often.
func memoryLimit(live uint64) int64 { return max(softMemory, int64(live/4*7)) } //nolint:gosec // a size in memory

// calm finds the moment when a rush is over: collections were made, and now none is for a while.
type calm struct {
	cycles  uint64
	quiet   int
	stirred bool
}

// sets tells whether calm has just set in.
func (c *calm) sets(cycles uint64) bool {
	if cycles != c.cycles {
		c.cycles, c.quiet, c.stirred = cycles, 0, true
		return false
	}
	c.quiet++
	if !c.stirred || c.quiet < calmAfter {
		return false
	}
	c.stirred = false
	return true
}
