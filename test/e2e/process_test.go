package e2e

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"flashsale.dev/seckill/internal/testing/installation"
	"flashsale.dev/seckill/internal/testing/must"
)

// event reads how often a node's limiter of random paths counted something.
func event(t *testing.T, p *installation.Program, name string) float64 {
	return sample(t, p, `seckill_limiter_events_total{event="`+name+`",rule="randomPath"} `)
}

// sample reads a program's metric by the beginning of its line; 0 where there is none yet.
func sample(t *testing.T, p *installation.Program, line string) float64 {
	_, rest, found := strings.Cut(scrape(t, p), "\n"+line)
	if !found {
		return 0
	}
	number, _, _ := strings.Cut(rest, "\n")
	n := must.Get(strconv.ParseFloat(number, 64))(t)
	return n
}

// peakMB is the most memory that a process has had resident, in MB.
func peakMB(t *testing.T, p *installation.Program) float64 {
	return float64(peakRSS(t, fmt.Sprintf("/proc/%d/", p.Pid()))) * 1024 / 1e6
}
