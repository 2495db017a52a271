package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/config"
	"flashsale.dev/seckill/internal/testing/must"
)

func TestRun_WrongCommandLineIsOneLine(t *testing.T) {
	for _, args := range [][]string{{"-bogus"}, {"-exit"}} {
		var out, trouble strings.Builder
		args = append([]string{"-data", t.TempDir()}, args...)
		err := run(t.Context(), args, nil, &out, &trouble)
		require.ErrorContains(t, err, args[2])
		require.NotContains(t, err.Error(), "\n")
		require.Empty(t, out.String()+trouble.String(), "the caller prints the error")
	}
}

func TestRun_DamagedDatabaseIsNamedWithTheRemedy(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "seckill.db")
	require.NoError(t, os.WriteFile(file, []byte(strings.Repeat("no database ", 1000)), 0o600))
	var out, trouble strings.Builder
	err := run(t.Context(), []string{"-data", dir, "-addr", "127.0.0.1:0"}, nil, &out, &trouble)
	require.ErrorContains(t, err, file+" is damaged: restore it from a backup")
}

// TestRun_ReportsAllProblemsTogether checks settings that a part reads after the start, such as the
// names of files, beside one that does not parse.
func TestRun_ReportsAllProblemsTogether(t *testing.T) {
	wrong := map[string]string{
		"SECKILL_PAYMENT_TIMEOUT": "soon", "SECKILL_SHOP_NAME": strings.Repeat("x", 41),
		"SECKILL_SHOP_LOGO": "none.png", "SECKILL_RATELIMIT_FILE": "none.yaml",
		"SECKILL_WEBHOOK_ALLOW": "a b", "SECKILL_OIDC_ISSUER": "http://login.example",
	}
	environ := []string{"SECKILL_OIDC_AUDIENCE=buyers"}
	for setting, value := range wrong {
		environ = append(environ, setting+"="+value)
	}
	var out, trouble strings.Builder
	err := run(t.Context(), []string{"-data", t.TempDir()}, environ, &out, &trouble)
	require.Error(t, err)
	for setting := range wrong {
		require.Equal(t, 1, strings.Count(err.Error(), setting), "%s in %v", setting, err)
	}
}

func TestRun_WrongAddressNamesTheFlagOrTheSetting(t *testing.T) {
	for _, c := range []struct{ flag, setting, want string }{
		{"192.0.2.1:8080", "", "(-addr;"},
		{"", "192.0.2.1:8080", "(SECKILL_HTTP_ADDR;"},
	} {
		environ := []string{"SECKILL_HTTP_ADDR=" + c.setting}
		var out, trouble strings.Builder
		err := run(t.Context(), []string{"-data", t.TempDir(), "-addr", c.flag}, environ, &out,
			&trouble)
		require.ErrorContains(t, err, c.want)
	}
}

func TestRun_SignalDuringTheStartIsNoFailure(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out, trouble strings.Builder
	require.NoError(t, run(ctx, []string{"-data", t.TempDir()}, nil, &out, &trouble))
	args := []string{"-data", t.TempDir(), "-demo", "-exit"}
	require.ErrorIs(t, run(ctx, args, nil, &out, &trouble), errDemoStopped)
}

// stopper cancels a context at the first line of a demo.
type stopper struct {
	strings.Builder
	stop context.CancelFunc
}

func (s *stopper) Write(p []byte) (int, error) {
	if strings.Contains(string(p), "units are on sale") {
		s.stop()
	}
	return s.Builder.Write(p)
}

func TestRun_InterruptedDemoPrintsNoVerdict(t *testing.T) {
	for _, c := range []struct {
		args []string
		want error
	}{
		{[]string{"-demo"}, nil},
		{[]string{"-demo", "-exit"}, errDemoStopped}, // the result may not be correct
	} {
		ctx, cancel := context.WithCancel(t.Context())
		out := &stopper{stop: cancel}
		args := append([]string{"-data", t.TempDir(), "-addr", "127.0.0.1:0"}, c.args...)
		err := run(ctx, args, []string{"SECKILL_OPS_ADDR=127.0.0.1:0"}, out, io.Discard)
		cancel()
		require.ErrorIs(t, err, c.want)
		require.Contains(t, out.String(), "units are on sale")
		require.NotContains(t, out.String(), "FAIL")
	}
}

func TestFillSecrets_DamagedFileIsNamedWithTheRemedy(t *testing.T) {
	for _, c := range []struct{ name, text string }{
		{"jwt-secret", ""},
		{"jwt-secret", "a part"},
		{"payment-secret", "a part"},
		{"phone-keys", ""},
		{"phone-keys", "1:abc"},
	} {
		dir := t.TempDir()
		file := filepath.Join(dir, c.name)
		require.NoError(t, os.WriteFile(file, []byte(c.text), 0o600))
		require.ErrorContains(t, fillSecrets(dir, &config.Auth{}),
			file+" is empty or damaged: restore the file")
	}
}

func TestIsTerminal_AFileIsNone(t *testing.T) {
	file := must.Get(os.Create(filepath.Join(t.TempDir(), "out")))(t)
	defer file.Close()
	require.False(t, isTerminal(file))
	require.False(t, isTerminal(&strings.Builder{}))
}
