package rig

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testenv"
)

// diskSize holds a MariaDB that has been installed and some orders, in bytes; what is not used of it takes no memory.
const diskSize = 512 << 20

// Disk is a small disk of its own, which can be full.
type Disk struct {
	Dir     string
	ballast string
}

// newDisk mounts one for a test. It needs the right to mount; a test that lacks it fails and says so.
func newDisk(t testing.TB) *Disk {
	t.Helper()
	dir, err := os.MkdirTemp("", "seckill-disk-") // not t.TempDir: a socket's path is short
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	require.NoError(t, mount(dir, diskSize), "a disk that can be full is a tmpfs, and mounting one takes root")
	t.Cleanup(func() { require.NoError(t, unmount(dir)) })
	return &Disk{Dir: dir, ballast: filepath.Join(dir, "ballast")}
}

// Fill writes a file that leaves not a byte free.
func (d *Disk) Fill(t testing.TB) {
	t.Helper()
	f, err := os.Create(d.ballast)
	require.NoError(t, err)
	for block := make([]byte, 1<<20); err == nil; {
		_, err = f.Write(block)
	}
	require.ErrorIs(t, err, syscall.ENOSPC)
	require.NoError(t, f.Close())
}

// Free takes the file away.
func (d *Disk) Free(t testing.TB) {
	t.Helper()
	require.NoError(t, os.Remove(d.ballast))
}

// ownSQL starts a MariaDB on a disk of its own.
func (r *Rig) ownSQL(t testing.TB) {
	t.Helper()
	r.Disk = newDisk(t)
	// Its log lies elsewhere: what it says of a full disk must not be lost to the full disk.
	err := os.Symlink(filepath.Join(t.TempDir(), "server.log"), filepath.Join(r.Disk.Dir, "server.log"))
	require.NoError(t, err)
	r.SQL, err = testenv.StartMariaDB(t.Context(), r.Disk.Dir)
	require.NoError(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the end of MariaDB's log:\n%s", r.SQL.Log())
		}
		require.NoError(t, r.SQL.Kill())
	})
}
