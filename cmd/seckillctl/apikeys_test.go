package main

import (
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/apierror"
	"flashsale.dev/seckill/internal/apikey"
	"flashsale.dev/seckill/internal/sqlstore"
	"flashsale.dev/seckill/internal/testing/must"
)

// TestAPIKey_WorksUntilItIsRevoked checks that the printed key works, that lists do not have its
// secret, and that a revoked key is refused.
func TestAPIKey_WorksUntilItIsRevoked(t *testing.T) {
	dsn := "sqlite:" + filepath.Join(t.TempDir(), "s.db")
	ctl := func(args ...string) (string, error) {
		var out strings.Builder
		err := run(t.Context(), append(args, "--mysql-dsn", dsn), nil, &out, io.Discard)
		return strings.TrimSpace(out.String()), err
	}
	must.Get(ctl("migrate"))(t)
	create := []string{"api-key", "create", "--merchant", "auth0|70", "--name", "stock system"}
	text := must.Get(ctl(append(create, "--scopes", "orders:read,sales:read")...))(t)
	store := must.Get(sqlstore.Open(t.Context(), dsn, ""))(t)
	defer store.Close()
	verified := func() (apikey.Key, error) { // each time without a cache
		return apikey.NewVerifier(store, time.Now, nil).Verify(t.Context(), text)
	}
	k := must.Get(verified())(t)
	require.Equal(t, []apikey.Scope{apikey.SalesRead, apikey.OrdersRead}, k.Scopes)
	require.Equal(t, "auth0|70", k.MerchantID)

	secret := text[strings.LastIndex(text, "_")+1:]
	for _, args := range [][]string{{}, {"-o", "json"}, {"--merchant", "auth0|70"}} {
		out := must.Get(ctl(append([]string{"api-key", "list"}, args...)...))(t)
		require.Contains(t, out, k.ID)
		require.Contains(t, out, "stock system")
		require.NotContains(t, out, secret)
	}
	require.Empty(t, must.Get(ctl("api-key", "list", "--merchant", "71"))(t))
	for _, id := range []string{k.ID, k.Prefix(), text} { // someone pastes a key that has leaked
		out := must.Get(ctl("api-key", "revoke", id))(t)
		require.Equal(t, "revoked "+k.ID+` "stock system" of merchant auth0|70`, out)
	}
	_, err := verified()
	require.Equal(t, apierror.Unauthenticated, apierror.ReasonOf(err))
	require.Contains(t, must.Get(ctl("api-key", "list"))(t), "revoked ")

	for _, bad := range []struct {
		code int
		args []string
	}{
		{codeRefused, []string{"api-key", "revoke", strings.Repeat("0", 26)}},
		{codeUsage, append(create, "--scopes", "sales:all")},
		{codeUsage, append(create, "--scopes", "")},
		{codeUsage, append(create, "--scopes", "sales:read", "--merchant", "a b")},
	} {
		_, err := ctl(bad.args...)
		var exit *exitError
		require.True(t, errors.As(err, &exit), "%v: %v", bad.args, err)
		require.Equal(t, bad.code, exit.code, "%v", bad.args)
	}
}
