package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/config"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/accesscode"
	"flashsale.dev/seckill/internal/testing/must"
)

const codesSecret = "a secret that only the tests know: long enough"

func codesOf(t *testing.T, args ...string) (string, error) {
	var out bytes.Buffer
	err := run(t.Context(), append([]string{"codes"}, args...), nil, &out, io.Discard)
	return out.String(), err
}

// apiKeys are the keys that an API derives from the same settings.
func apiKeys(t *testing.T, a config.Auth) *accesscode.Keys {
	return accesscode.NewKeys(must.Get(a.OrderKeys())(t)...)
}

// TestCodes_VerifyAtTheAPI prints codes with the JWT secret, with an order secret, and with the
// secret of a standalone.
func TestCodes_VerifyAtTheAPI(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "jwt-secret"), []byte(codesSecret), 0o600))
	jwt := config.Auth{JWTSecret: codesSecret}
	for name, c := range map[string]struct {
		args []string
		api  config.Auth
	}{
		"JWT secret": {[]string{"--jwt-secret", codesSecret}, jwt},
		"order secret": {
			[]string{"--order-secret", "x" + codesSecret},
			config.Auth{OrderSecret: "x" + codesSecret},
		},
		"standalone": {[]string{"--data", dir}, jwt},
	} {
		out := must.Get(codesOf(t, append(c.args, "42", "--kind", "single", "--count", "3")...))(t)
		codes := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
		require.Len(t, codes, 3, name)
		for _, code := range codes {
			must.Get(apiKeys(t, c.api).Verify(code, 42, seckill.SingleCodes, time.Now()))(t)
		}
	}
}

func TestCodes_JSONHasTheirEnd(t *testing.T) {
	var got signedCodes
	out := must.Get(codesOf(t, "-o", "json", "42", "--jwt-secret", codesSecret, "--kind", "shared",
		"--expires", "2086-11-11T12:30:00Z"))(t)
	require.NoError(t, json.Unmarshal([]byte(out), &got))
	require.Equal(t, "2086-11-11T13:00:00Z", got.ExpiresAt.Format(time.RFC3339))
	require.Len(t, got.Codes, 1)
	out = must.Get(codesOf(t, "-o", "json", "42", "--jwt-secret", codesSecret,
		"--kind", "shared"))(t)
	require.Contains(t, out, `"expiresAt": null`)
}

func TestCodes_RefusesABadCommandLine(t *testing.T) {
	for _, args := range [][]string{
		{"--kind", "single"},
		{"x", "--kind", "single"},
		{"0", "--kind", "single"},
		{"42"},
		{"42", "--kind", "none"},
		{"42", "--kind", "single", "--count", "0"},
		{"42", "--kind", "single", "--count", "100001"},
		{"42", "--kind", "single", "--expires", "tomorrow"},
		{"42", "--kind", "single", "--expires", "2020-01-01T00:00:00Z"},
		{"42", "--kind", "single", "--expires", "2090-01-01T00:00:00Z"},
		{"42", "--kind", "single", "--order-secret", "short"},
		{"42", "--kind", "single", "--old-order-secrets", codesSecret + ",short"},
	} {
		_, err := codesOf(t, append(args, "--jwt-secret", codesSecret)...)
		var exit *exitError
		require.ErrorAs(t, err, &exit, args)
		require.Equal(t, codeUsage, exit.ExitCode(), args)
	}
	_, err := codesOf(t, "42", "--kind", "single", "--data", t.TempDir())
	require.ErrorContains(t, err, "SECKILL_ORDER_SECRET")
}
