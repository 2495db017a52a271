package bench

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testing/installation"
)

// profile takes a processor profile of a program while it works, into the folder of
// SECKILL_BENCH_PROFILE. Without that setting it only runs the work.
func profile(b *testing.B, p *installation.Program, name string, run func() measurement) {
	b.Helper()
	dir := os.Getenv("SECKILL_BENCH_PROFILE")
	if dir == "" {
		return
	}
	require.NoError(b, os.MkdirAll(dir, 0o755))
	taken := make(chan error, 1)
	url := "http://" + p.OpsAddr() + "/debug/pprof/profile?seconds=8"
	go func() {
		file := filepath.Join(dir, name+".pprof")
		taken <- exec.CommandContext(b.Context(), "curl", "-sSfo", file, url).Run()
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
