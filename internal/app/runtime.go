package app

import (
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"

	"flashsale.dev/seckill/internal/config"
	"flashsale.dev/seckill/internal/order/orderwriter"
)

// gcPercent lets a heap grow to five times its live size before Go collects it. Under load most of
// the heap is garbage, and SECKILL_MEMORY_LIMIT bounds it. With 400 the API marks for less than 1 %
// of its processor time and sweeps for 1.5 %, so more saves nothing. With 100 the handlers of a
// purchase cost a quarter more.
const gcPercent = 400

// limitRuntime bounds the memory of every program and the processors of a consumer. GOMAXPROCS in
// the environment has priority.
func limitRuntime(program config.Program, process config.Process) {
	limitMemory(process)
	if n, _ := strconv.Atoi(os.Getenv("GOMAXPROCS")); program == config.Consumer && n < 1 {
		runtime.GOMAXPROCS(orderwriter.Processors(runtime.GOMAXPROCS(0)))
	}
}

// limitMemory bounds the memory that Go uses, stacks included. GOMEMLIMIT and GOGC in the
// environment have priority.
func limitMemory(process config.Process) {
	if debug.SetMemoryLimit(-1) == math.MaxInt64 {
		debug.SetMemoryLimit(int64(process.MemoryLimit) << 20)
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
}
