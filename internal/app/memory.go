package app

import (
	"context"
	"math"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// minMemoryLimit is the lowest memory limit, in bytes: enough for about 2,000 connections.
	minMemoryLimit = 100 << 20
	// memoryTick is the interval between two readings of the heap.
	memoryTick = time.Second
	// calmAfter is the number of readings without a collection after which a peak is over.
	calmAfter = 10
)

// Memory bounds a node's heap during peaks and returns memory after them. By default Go lets a heap
// grow to twice its live size, and returns free memory within minutes. Memory sets a limit that
// follows the live heap, because a constant limit would make a node with many connections collect
// all the time. After a peak it returns free memory at once. A GOMEMLIMIT in the environment wins.
type Memory struct{}

// Run adjusts the limit until ctx ends.
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
		if c.begins(cycles) {
			debug.FreeOSMemory()
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// readMemory returns the live heap at the last collection, in bytes, and the number of collections
// that the runtime started.
func readMemory() (live, cycles uint64) {
	samples := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/cycles/automatic:gc-cycles"}}
	metrics.Read(samples)
	return samples[0].Value.Uint64(), samples[1].Value.Uint64()
}

// memoryLimit allows three quarters more than the live heap.
func memoryLimit(live uint64) int64 { return max(minMemoryLimit, int64(live/4*7)) }

// calm detects the end of a peak: collections, followed by calmAfter readings without any.
type calm struct {
	cycles uint64
	quiet  int
	busy   bool
}

// begins reports, once per peak, that the peak is over.
func (c *calm) begins(cycles uint64) bool {
	if cycles != c.cycles {
		c.cycles, c.quiet, c.busy = cycles, 0, true
		return false
	}
	c.quiet++
	if !c.busy || c.quiet < calmAfter {
		return false
	}
	c.busy = false
	return true
}
