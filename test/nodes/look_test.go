package nodes

import (
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/test/rig"
)

// event reads how often a node's limiter of random paths counted something.
func event(t *testing.T, p *rig.Program, name string) float64 {
	t.Helper()
	return sample(t, p, `seckill_limiter_events_total{event="`+name+`",rule="randomPath"} `)
}

// sample reads a program's metric by the beginning of its line; 0 where there is none yet.
func sample(t *testing.T, p *rig.Program, line string) float64 {
	t.Helper()
	resp, err := http.Get("http://" + p.OpsAddr() + "/metrics")
	require.NoError(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(text), "\n"+line)
	if !found {
		return 0
	}
	number, _, _ := strings.Cut(rest, "\n")
	n, err := strconv.ParseFloat(number, 64)
	require.NoError(t, err)
	return n
}

// peakMB is the most memory that a process has had resident, in MB.
func peakMB(t *testing.T, p *rig.Program) float64 {
	t.Helper()
	text, err := os.ReadFile("/proc/" + strconv.Itoa(p.Pid()) + "/status")
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(text), "VmHWM:")
	require.True(t, found)
	kb, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
	require.NoError(t, err)
	return kb * 1024 / 1e6
}

// used is the processor time of a process so far.
func used(t *testing.T, p *rig.Program) time.Duration {
	t.Helper()
	text, err := os.ReadFile("/proc/" + strconv.Itoa(p.Pid()) + "/stat")
	require.NoError(t, err)
	_, after, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(after)
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * (time.Second / 100) // USER_HZ
}
