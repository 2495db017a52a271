package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/auth"
	"flashsale.dev/seckill/internal/config"
	"flashsale.dev/seckill/internal/paymentprovider"
	"flashsale.dev/seckill/internal/testing/must"
)

func TestFillSecrets_KeepsGeneratedSecrets(t *testing.T) {
	dir := t.TempDir()
	var first, again config.Auth
	require.NoError(t, fillSecrets(dir, &first))
	require.NoError(t, fillSecrets(dir, &again))
	require.Equal(t, first, again)
	require.GreaterOrEqual(t, len(first.JWTSecret.Reveal()), auth.MinSecret)
	require.GreaterOrEqual(t, len(first.PaymentSecret.Reveal()), paymentprovider.MinSecret)
	require.NotEqual(t, first.JWTSecret, first.PaymentSecret)
	keys := must.Get(first.Phones())(t)
	require.Len(t, keys, 1)
	require.Equal(t, "1", keys[0].ID)

	var other config.Auth
	require.NoError(t, fillSecrets(t.TempDir(), &other))
	require.NotEqual(t, first.PhoneKeys, other.PhoneKeys)
	require.Len(t, must.Get(os.ReadDir(dir))(t), 3, "no temporary file is left")
	for _, file := range []string{"jwt-secret", "payment-secret", "phone-keys"} {
		info := must.Get(os.Stat(filepath.Join(dir, file)))(t)
		require.Equal(t, fs.FileMode(0o600), info.Mode(), "only the owner may read the file")
	}
}

func TestFillSecrets_KeepsConfiguredSecrets(t *testing.T) {
	dir := t.TempDir()
	set := config.Auth{JWTSecret: "a", PaymentSecret: "b", PhoneKeys: "c"}
	got := set
	require.NoError(t, fillSecrets(dir, &got))
	require.Equal(t, set, got)
	files := must.Get(os.ReadDir(dir))(t)
	require.Empty(t, files)
}
