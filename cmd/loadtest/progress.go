package main

import (
	"fmt"
	"io"

	"flashsale.dev/seckill/internal/loadgen"
	"flashsale.dev/seckill/internal/loadgen/buyer"
)

// progressSeconds is the time between two lines of progress.
const progressSeconds = 5

// progress returns a function that prints the newest point, at most one line per progressSeconds.
func progress(out io.Writer, buyers int) func(loadgen.Point) {
	done, next := 0, 0.0
	return func(at loadgen.Point) {
		done += at.Done
		if at.At < next {
			return
		}
		next = at.At + progressSeconds
		per := func(n int) float64 { return float64(n) / at.Span }
		fmt.Fprintf(out, "%6.1f s  %d of %d buyers done, %.0f started/s, %.0f won/s, %.0f sold out/s, %d active, "+
			"429 %.0f/s, 5xx %.0f/s, no answer %.0f/s, path p99 %.1f ms, buy p99 %.1f ms\n",
			at.At, done, buyers, per(at.Arrived), per(at.Won), per(at.SoldOut), at.InFlight,
			per(at.Limited), per(at.Faults), per(at.Errors),
			at.Steps[buyer.StepPath].P99, at.Steps[buyer.StepBuy].P99)
	}
}
