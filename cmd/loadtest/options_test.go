package main

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/loadgen/apiclient"
	"flashsale.dev/seckill/internal/testing/must"
)

func parsed(t *testing.T, args ...string) (options, error) {
	t.Helper()
	o, err := parse(args, &bytes.Buffer{})
	if err == nil {
		err = o.check(t.Context())
	}
	return o, err
}

func TestCheck_RefusesRemoteHostsByDefault(t *testing.T) {
	for _, addr := range []string{
		"http://192.0.2.1", "http://10.0.0.1:8080", "http://127.0.0.1:8080,http://192.0.2.1",
		"http://[2001:db8::1]:80", "http://0.0.0.0:80",
	} {
		_, err := parsed(t, "-addr", addr)
		require.ErrorIs(t, err, apiclient.ErrRemote, addr)
		must.Get(parsed(t, "-addr", addr, "-allow-remote"))(t, addr)
	}
	for _, addr := range []string{
		"http://127.0.0.1:8080", "http://[::1]:8080", "http://localhost:8080/",
		"http://127.0.0.1:1, http://127.0.0.1:2",
	} {
		must.Get(parsed(t, "-addr", addr))(t, addr)
	}
}

// TestCheck_NamesAReportThatCannotBeWritten checks that a report which can't be written is an error
// before the load, and that the check keeps an older report.
func TestCheck_NamesAReportThatCannotBeWritten(t *testing.T) {
	dir := t.TempDir()
	_, err := parsed(t, "-json", filepath.Join(dir, "none", "a"), "-html", dir)
	require.ErrorContains(t, err, "-json: ")
	require.ErrorContains(t, err, "-html: ")

	older := filepath.Join(dir, "older.json")
	require.NoError(t, os.WriteFile(older, []byte("{}"), 0o600))
	must.Get(parsed(t, "-json", older, "-html", "-"))(t)
	require.Equal(t, "{}", string(must.Get(os.ReadFile(older))(t)))
}

func TestCheck_ReportsAllProblems(t *testing.T) {
	for name, args := range map[string][]string{
		"no buyers": {"-buyers", "0"}, "too many": {"-buyers", "10000001"},
		"both loops": {"-users", "1", "-rate", "1"}, "not a number": {"-rate", "NaN"},
		"a share above one":        {"-impatient", "0.6", "-hostile", "0.6"},
		"a spike of more than all": {"-spike", "9", "-buyers", "5"}, "no time": {"-timeout", "0s"},
		"no url": {"-addr", "127.0.0.1:8080"}, "https": {"-addr", "https://127.0.0.1"},
		"a path":            {"-addr", "http://127.0.0.1/api"},
		"a strange profile": {"-profile", "billion"}, "an argument": {"extra"},
		"more than the limit": {"-quantity", "2"},
		"no compression":      {"-profile", "million", "-compress", "0.5"},
	} {
		_, err := parsed(t, args...)
		require.Error(t, err, name)
	}
	_, err := parsed(t, "-buyers", "0", "-hostile", "2")
	require.ErrorContains(t, err, "-buyers")
	require.ErrorContains(t, err, "-hostile")
}

func TestProfile_MillionKeepsItsProportions(t *testing.T) {
	for compress, args := range map[float64][]string{1: {"-compress", "1"}, 60: nil} {
		o := must.Get(parsed(t, append([]string{"-profile", "million"}, args...)...))(t)
		require.Equal(t, 1_000_000, o.Buyers)
		require.InDelta(t, 3600/compress, float64(o.Buyers-o.Spike)/o.Rate, .001,
			"the buyers must arrive within the compressed hour")
		require.InDelta(t, 1000*compress, o.permits, .001)
		require.Greater(t, o.timeout, o.compressed(time.Hour))
		p := &loadTest{options: o}
		require.InDelta(t, 1000, p.limiter().PermitsPerSecond*p.limiter().MaxBurstSeconds, .001,
			"the burst must be 1000 permits")
		require.Contains(t, o.compressionNote(), "compressed")
	}
	o := must.Get(parsed(t, "-profile", "million", "-buyers", "5000", "-users", "50"))(t)
	require.Equal(t, []int{5000, 50, 5000}, []int{o.Buyers, o.Users, o.Spike})
	require.Zero(t, o.Rate)
}

func TestParse_SetsDependentDefaults(t *testing.T) {
	o := must.Get(parsed(t))(t)
	require.Greater(t, o.FirstID, int64(maxBuyers))
	require.Equal(t, 200, o.Users)
	o = must.Get(parsed(t, "-rate", "5"))(t)
	require.Zero(t, o.Users)
}

func TestSecret_EnvironmentBeforeFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(file, []byte("of the file\n"), 0o600))
	for want, environ := range map[string][]string{
		"of the environment": {"SECKILL_JWT_SECRET=of the environment"},
		"of the file":        {"SECKILL_JWT_SECRET="},
	} {
		got := must.Get(secret(environ, file))(t)
		require.Equal(t, want, got)
	}
	_, err := secret(nil, file+"-not")
	require.ErrorContains(t, err, "SECKILL_JWT_SECRET")
}

func TestHelp_ListsFlagsAndKinds(t *testing.T) {
	var out bytes.Buffer
	_, err := parse([]string{"-help"}, &out)
	require.ErrorIs(t, err, flag.ErrHelp)
	for _, said := range []string{
		"-allow-remote", "-profile name", "SECKILL_JWT_SECRET", "(default 10m0s)", "Exit code 0",
		"hostile    ",
	} {
		require.Contains(t, out.String(), said)
	}
}

func TestRun_WrongFlagIsOneLine(t *testing.T) {
	var out, trouble bytes.Buffer
	err := run(t.Context(), []string{"-bogus"}, nil, &out, &trouble)
	require.EqualError(t, err,
		"flag provided but not defined: -bogus (loadtest -help lists the flags)")
	require.Empty(t, out.String()+trouble.String(), "the caller prints the error")
}
