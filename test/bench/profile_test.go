package bench

import (
	"fmt"
	"io"
	"net/http"
	"os"
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
	go func() { taken <- fetchProfile(p.OpsAddr(), filepath.Join(dir, name+".pprof")) }()
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

func fetchProfile(addr, file string) error {
	resp, err := http.Get("http://" + addr + "/debug/pprof/profile?seconds=8")
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	profile, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("profile: %s", resp.Status)
	}
	if err != nil {
		return err
	}
	return os.WriteFile(file, profile, 0o644)
}
