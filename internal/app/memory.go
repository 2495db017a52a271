package app

import (
	"math"
	"os"
	"runtime/debug"

	"flashsale.dev/seckill/internal/config"
)

// gcPercent lets a heap grow to five times its live size before Go collects it. Under load most of
// the heap is garbage, and SECKILL_MEMORY_LIMIT bounds it. With 400 the API marks for less than 1 %
// of its processor time and sweeps for 1.5 %, so more saves nothing. With 100 the handlers of a
// purchase cost a quarter more.
const gcPercent = 400

// limitMemory bounds the memory that Go uses, stacks included. GOMEMLIMIT and GOGC in the
// environment have priority.
func limitMemory(p config.Process) {
	if debug.SetMemoryLimit(-1) == math.MaxInt64 {
		debug.SetMemoryLimit(int64(p.MemoryLimit) << 20)
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
}
