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

// plainEvery is how often a line is written where there is no terminal.
const plainEvery = 5 * time.Second

// progress shows how far the load is: a bar with live rates on a terminal, else a line now and then.
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

// show takes the newest stretch.
func (p *progress) show(at loadgen.Point) {
	p.done += at.Done
	switch {
	case p.quiet || at.Span <= 0:
	case p.bar != nil:
		p.bar.Describe(rates(at))
		_ = p.bar.Set(p.done) // a bar that can't be drawn is no reason to stop
	case at.At >= p.next:
		fmt.Fprintf(p.out, "%6.1f s  %d of %d buyers done, %s\n", at.At, p.done, p.buyers, rates(at))
		p.next = at.At + plainEvery.Seconds()
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
	text := fmt.Sprintf("%.0f come/s, %.0f won/s, %.0f sold out/s, %d on their way", per(at.Arrived), per(at.Won), per(at.SoldOut), at.InFlight)
	if q, ok := at.Steps[buyer.StepPath]; ok {
		text += fmt.Sprintf(", path p99 %.1f ms", q.P99)
	}
	if q, ok := at.Steps[buyer.StepBuy]; ok {
		text += fmt.Sprintf(", buy p99 %.1f ms", q.P99)
	}
	if trouble := at.Limited + at.Faults + at.Errors; trouble > 0 {
		text += fmt.Sprintf(", 429 %.0f/s, 5xx %.0f/s, no answer %.0f/s", per(at.Limited), per(at.Faults), per(at.Errors))
	}
	return text
}
