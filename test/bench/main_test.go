package bench

import (
	"os"
	"sync/atomic"
	"testing"

	"flashsale.dev/seckill/internal/testing/installation"
	"flashsale.dev/seckill/internal/testing/servers"
)

// recordSetting names the file that the table is appended to.
const recordSetting = "SECKILL_BENCH_RECORD"

// olderSetting names a folder with the programs of an earlier commit, which then compete with this
// commit's. `make bench OLD=commit` builds them.
const olderSetting = "SECKILL_BENCH_OLDER"

// env shares the servers among the benchmarks.
var env = servers.NewSuite()

// serial numbers buyers and orders, so that each number is used once.
var serial atomic.Int64

// results is the table that is printed at the end.
var results table

func TestMain(m *testing.M) {
	if spec := os.Getenv(floorSetting); spec != "" { // this process is the floor program
		os.Exit(runFloor(spec))
	}
	code := installation.Around(m, env)
	if err := results.publish(os.Stdout, os.Getenv(recordSetting)); err != nil {
		os.Stderr.WriteString("bench: " + err.Error() + "\n")
		code = max(code, 1)
	}
	os.Exit(code)
}
