package app

import (
	"math"
	"os"
	"runtime"
	"runtime/debug"

	"flashsale.dev/seckill/internal/config"
)

// gcPercent lets a heap grow to five times its live size before Go collects it. Under load most of
// the heap is garbage, and SECKILL_MEMORY_LIMIT bounds it. With 400 the API marks for less than 1 %
// of its processor time and sweeps for 1.5 %, so more saves nothing. With 100 the handlers of a
// purchase cost a quarter more.
const gcPercent = 400

// consumerShare is how many processors of the machine there are for each one that the consumer
// uses. It waits for servers most of the time. With more processors, Go's scheduler wakes those that
// are idle for each message and for each answer of a server, which takes a fifth of the consumer's
// time. An order takes it 20 to 45 µs.
const consumerShare = 4

// limitRuntime bounds the memory and the processors that Go uses.
func limitRuntime(program config.Program, p config.Process) {
	limitMemory(p)
	if program == config.Consumer && os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(max(1, runtime.GOMAXPROCS(0)/consumerShare))
	}
}

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
