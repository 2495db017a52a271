package e2e

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testing/installation"
)

// event reads how often a node's limiter of random paths counted something.
func event(t *testing.T, p *installation.Program, name string) float64 {
	t.Helper()
	return sample(t, p, `seckill_limiter_events_total{event="`+name+`",rule="randomPath"} `)
}

// sample reads a program's metric by the beginning of its line; 0 where there is none yet.
func sample(t *testing.T, p *installation.Program, line string) float64 {
	t.Helper()
	_, rest, found := strings.Cut(scrape(t, p), "\n"+line)
	if !found {
		return 0
	}
	number, _, _ := strings.Cut(rest, "\n")
	n, err := strconv.ParseFloat(number, 64)
	require.NoError(t, err)
	return n
}

// peakMB is the most memory that a process has had resident, in MB.
func peakMB(t *testing.T, p *installation.Program) float64 {
	t.Helper()
	return float64(peakRSS(t, fmt.Sprintf("/proc/%d/", p.Pid()))) * 1024 / 1e6
}

// used is the processor time of a process so far.
func used(t *testing.T, p *installation.Program) time.Duration {
	t.Helper()
	text, err := os.ReadFile("/proc/" + strconv.Itoa(p.Pid()) + "/stat")
	require.NoError(t, err)
	_, after, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(after)
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * (time.Second / 100) // USER_HZ
}
