package servers_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"flashsale.dev/seckill/internal/testing/must"
	"flashsale.dev/seckill/internal/testing/servers"
)

// TestMariaDB_ServersShareOneTemplate starts servers concurrently with a cache that has only the
// remains of an older version. One start creates the template, and no server changes it.
func TestMariaDB_ServersShareOneTemplate(t *testing.T) {
	t.Setenv(servers.EnvExternalSQL, "")
	cache := t.TempDir()
	t.Setenv(servers.EnvServersDir, cache)
	dir := filepath.Join(cache, fmt.Sprintf("seckill-data-%d", os.Geteuid()))
	old := filepath.Join(dir, "mariadbd-0123456789abcdef")
	require.NoError(t, os.MkdirAll(filepath.Join(old, "mysql"), 0o700))

	all := make([]*servers.SQLServer, 2)
	var g errgroup.Group
	for i := range all {
		at := shortDir(t)
		g.Go(func() (err error) {
			all[i], err = servers.StartMariaDB(t.Context(), at)
			return err
		})
	}
	require.NoError(t, g.Wait())
	templates := must.Get(filepath.Glob(filepath.Join(dir, "mariadbd-*")))(t)
	require.Len(t, templates, 1, "one template for each version")
	require.NotEqual(t, old, templates[0])
	before := must.Get(os.Stat(templates[0]))(t)

	name := "seckill_test_template"
	execSQL(t, openSQL(t, all[0].DSN("")), "CREATE DATABASE "+name)
	require.NotContains(t, databases(t, openSQL(t, all[1].DSN(""))), name)
	require.NoError(t, all[0].RestartEmpty(t.Context()))
	require.NotContains(t, databases(t, openSQL(t, all[0].DSN(""))), name)
	for _, server := range all {
		require.NoError(t, server.Kill())
	}
	require.NoDirExists(t, filepath.Join(templates[0], name))
	after := must.Get(os.Stat(templates[0]))(t)
	require.True(t, os.SameFile(before, after), "RestartEmpty must use the same template")
}

// TestMariaDB_NeedsNoCache checks that a user without a home directory can start a server.
func TestMariaDB_NeedsNoCache(t *testing.T) {
	for _, name := range []string{
		servers.EnvExternalSQL, servers.EnvServersDir, "XDG_CACHE_HOME", "HOME",
	} {
		t.Setenv(name, "")
	}
	t.Setenv("TMPDIR", shortDir(t))
	server := must.Get(servers.StartMariaDB(t.Context(), shortDir(t)))(t)
	require.NoError(t, server.Kill())
}
