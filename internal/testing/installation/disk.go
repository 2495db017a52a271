package installation

import (
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testing/servers"
)

// diskSize holds a MariaDB that has been installed and some orders, or a MySQL with its logs, in bytes; what is not used of it takes no memory.
const diskSize = 512 << 20

// Disk is a small disk of its own, which can be full.
type Disk struct {
	Dir     string
	ballast string
}

// newDisk mounts one at dir for a test. It needs the right to mount; a test that lacks it fails and says so. A server's log
// lies elsewhere: what it says of a full disk must not be lost to the full disk.
func newDisk(t testing.TB, dir string) *Disk {
	t.Helper()
	require.NoError(t, os.MkdirAll(dir, 0o700))
	require.NoError(t, mount(dir, diskSize), "a disk that can be full is a tmpfs, and mounting one takes root")
	t.Cleanup(func() { require.NoError(t, unmount(dir)) })
	require.NoError(t, os.Symlink(filepath.Join(t.TempDir(), "server.log"), filepath.Join(dir, "server.log")))
	return &Disk{Dir: dir, ballast: filepath.Join(dir, "ballast")}
}

// shortDir is a directory for a test that is not t.TempDir: a socket's path is short.
func shortDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "seckill-disk-")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
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
func (r *Installation) ownSQL(t testing.TB) {
	t.Helper()
	r.Disk = newDisk(t, shortDir(t))
	var err error
	r.SQL, err = servers.StartMariaDB(t.Context(), r.Disk.Dir)
	require.NoError(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the end of MariaDB's log:\n%s", r.SQL.Log())
		}
		require.NoError(t, r.SQL.Kill())
	})
}

// ownGroup starts a MySQL group whose members have disks of their own; Disk is that of the primary.
func (r *Installation) ownGroup(t testing.TB) {
	t.Helper()
	dir := shortDir(t)
	disks := make([]*Disk, groupMembers)
	for i := range disks {
		disks[i] = newDisk(t, servers.MemberDir(dir, i))
	}
	group, err := servers.StartMySQLGroup(t.Context(), dir, groupMembers)
	require.NoError(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the ends of the group's logs:\n%s", group.Log())
		}
		require.NoError(t, group.Stop())
	})
	r.onGroup(t, group)
	r.Disk = disks[slices.Index(group.Members(), r.SQL)]
}
