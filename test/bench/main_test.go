package bench

import (
	"os"
	"sync/atomic"
	"testing"

	"flashsale.dev/seckill/internal/testing/installation"
	"flashsale.dev/seckill/internal/testing/servers"
)

// env shares the servers among the benchmarks.
var env = servers.NewSuite()

// serial numbers buyers and orders, so that none comes twice.
var serial atomic.Int64

// results are the rows of the table that is printed at the end.
var results table

func TestMain(m *testing.M) {
	if spec := os.Getenv(floorSetting); spec != "" { // this process is the floor program
		os.Exit(runFloor(spec))
	}
	code := installation.Around(m, env)
	if err := results.publish(os.Stdout, os.Getenv("SECKILL_BENCH_RECORD")); err != nil {
		os.Stderr.WriteString("bench: " + err.Error() + "\n")
		code = max(code, 1)
	}
	os.Exit(code)
}
