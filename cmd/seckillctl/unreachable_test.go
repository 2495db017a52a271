package main

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testing/must"
)

func TestUnreachableServer_IsNamedWithItsSetting(t *testing.T) {
	t.Chdir(t.TempDir())
	closed := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	addr := closed.Addr().String()
	require.NoError(t, closed.Close())
	ledger := func() error {
		return run(t.Context(), []string{"ledger", "7", "--mysql-dsn", "a:b@tcp(" + addr + ")/c"},
			nil, io.Discard, io.Discard)
	}
	err := ledger()
	require.ErrorContains(t, err, "no server answers at "+addr)
	require.ErrorContains(t, err, "set SECKILL_MYSQL_DSN (--mysql-dsn) to another")
	require.NotContains(t, err.Error(), "SECKILL_REDIS_ADDRS")
	require.NotContains(t, err.Error(), "standalone")

	require.NoError(t, os.Mkdir("data", 0o700))
	require.NoError(t, os.WriteFile(filepath.Join("data", "seckill.db"), nil, 0o600))
	require.ErrorContains(t, ledger(), "--mysql-dsn sqlite:data/seckill.db reads it")
}

func TestToken_UsesTheSecretOfAStandalone(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("SECKILL_JWT_SECRET", "")
	var out strings.Builder
	token := func() error {
		return run(t.Context(), []string{"token", "--sub", "1"}, nil, &out, io.Discard)
	}
	require.ErrorContains(t, token(), "set SECKILL_JWT_SECRET (--secret)")

	require.NoError(t, os.Mkdir("data", 0o700))
	file := filepath.Join("data", "jwt-secret")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	require.ErrorContains(t, token(), file+" is empty")

	require.NoError(t, os.WriteFile(file, []byte(strings.Repeat("s", 32)), 0o600))
	require.NoError(t, token())
	require.Equal(t, 2, strings.Count(out.String(), "."), "a JWT has three parts")
}
