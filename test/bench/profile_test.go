package bench

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testing/installation"
)

// profile takes a processor profile of a program while it works, and then one of its allocations
// since its start, into the folder of SECKILL_BENCH_PROFILE. Without that setting it does nothing.
func profile(b *testing.B, p *installation.Program, name string, run func() measurement) {
	b.Helper()
	dir := os.Getenv("SECKILL_BENCH_PROFILE")
	if dir == "" {
		return
	}
	require.NoError(b, os.MkdirAll(dir, 0o755))
	taken := make(chan error, 1)
	fetch := func(name, page string) error {
		url, file := "http://"+p.OpsAddr()+"/debug/pprof/"+page, filepath.Join(dir, name+".pprof")
		return exec.CommandContext(b.Context(), "curl", "-sSfo", file, url).Run()
	}
	go func() {
		taken <- errors.Join(fetch(name, "profile?seconds=8"), fetch(name+"-allocs", "allocs"))
	}()
	for {
		select {
		case err := <-taken:
			require.NoError(b, err)
			return
		default:
			run()
		}
	}
}
