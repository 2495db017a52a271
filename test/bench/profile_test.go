package bench

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testing/installation"
)

// profile takes a processor profile of a program while it works, into the folder that SECKILL_BENCH_PROFILE names; where none is
// named it does nothing.
func profile(b *testing.B, p *installation.Program, name string, run func() lap) {
	b.Helper()
	dir := os.Getenv("SECKILL_BENCH_PROFILE")
	if dir == "" {
		return
	}
	taken := make(chan error, 1)
	go func() { taken <- fetchProfile(b, p.OpsAddr(), filepath.Join(dir, name+".pprof")) }()
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

func fetchProfile(b *testing.B, addr, file string) error {
	req, err := http.NewRequestWithContext(b.Context(), http.MethodGet, "http://"+addr+"/debug/pprof/profile?seconds=8", nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	profile, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, profile, 0o644)
}
