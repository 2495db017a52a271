package e2e

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"flashsale.dev/seckill/internal/testing/installation"
	"flashsale.dev/seckill/internal/testing/must"
)

// event returns the counter of one event of a node's limiter of random paths.
func event(t *testing.T, p *installation.Program, name string) float64 {
	return sample(t, p, `seckill_limiter_events_total{event="`+name+`",rule="randomPath"} `)
}

// sample returns a program's metric by the beginning of its line. It returns 0 where there is no
// such line.
func sample(t *testing.T, p *installation.Program, line string) float64 {
	_, rest, found := strings.Cut(scrape(t, p), "\n"+line)
	if !found {
		return 0
	}
	number, _, _ := strings.Cut(rest, "\n")
	n := must.Get(strconv.ParseFloat(number, 64))(t)
	return n
}

// peakMB returns the peak resident memory of a process, in MB.
func peakMB(t *testing.T, p *installation.Program) float64 {
	return float64(peakRSS(t, fmt.Sprintf("/proc/%d/", p.Pid()))) * 1024 / 1e6
}
