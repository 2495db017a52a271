package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"flashsale.dev/seckill/internal/loadgen"
	"flashsale.dev/seckill/internal/loadgen/buyer"
)

// logInterval is the time between two lines without a terminal.
const logInterval = 5 * time.Second

// progress shows a bar with live rates on a terminal, else a line at each logInterval.
type progress struct {
	out    io.Writer
	buyers int
	bar    *progressbar.ProgressBar // nil without a terminal
	quiet  bool

	done int
	next float64 // seconds at which the next plain line is due
}

func newProgress(out io.Writer, buyers int, quiet bool) *progress {
	p := &progress{out: out, buyers: buyers, quiet: quiet}
	if f, ok := out.(*os.File); ok && !quiet && term.IsTerminal(int(f.Fd())) {
		p.bar = progressbar.NewOptions(buyers, progressbar.OptionSetWriter(out), progressbar.OptionShowCount(),
			progressbar.OptionSetPredictTime(true), progressbar.OptionSetWidth(20), progressbar.OptionThrottle(100*time.Millisecond),
			progressbar.OptionFullWidth())
	}
	return p
}

// show displays the newest point.
func (p *progress) show(at loadgen.Point) {
	p.done += at.Done
	switch {
	case p.quiet || at.Span <= 0:
	case p.bar != nil:
		p.bar.Describe(rates(at))
		_ = p.bar.Set(p.done) // a display error must not end the load
	case at.At >= p.next:
		fmt.Fprintf(p.out, "%6.1f s  %d of %d buyers done, %s\n", at.At, p.done, p.buyers, rates(at))
		p.next = at.At + logInterval.Seconds()
	}
}

func (p *progress) end() {
	if p.bar != nil {
		_ = p.bar.Exit() // leaves the last state on the screen
		fmt.Fprintln(p.out)
	}
}

func rates(at loadgen.Point) string {
	per := func(n int) float64 { return float64(n) / at.Span }
	text := fmt.Sprintf("%.0f started/s, %.0f won/s, %.0f sold out/s, %d active",
		per(at.Arrived), per(at.Won), per(at.SoldOut), at.InFlight)
	if q, ok := at.Steps[buyer.StepPath]; ok {
		text += fmt.Sprintf(", path p99 %.1f ms", q.P99)
	}
	if q, ok := at.Steps[buyer.StepBuy]; ok {
		text += fmt.Sprintf(", buy p99 %.1f ms", q.P99)
	}
	if at.Limited+at.Faults+at.Errors > 0 {
		text += fmt.Sprintf(", 429 %.0f/s, 5xx %.0f/s, no answer %.0f/s", per(at.Limited), per(at.Faults), per(at.Errors))
	}
	return text
}
