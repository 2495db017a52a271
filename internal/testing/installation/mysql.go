package installation

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testing/must"
	"flashsale.dev/seckill/internal/testing/servers"
)

// groups numbers the installations with a group. Each registers a network of its own with the
// driver, whose registry is global.
var groups atomic.Int64 //nolint:gochecknoglobals // the driver's registry is global too

// startSQL creates a database on the suite's MySQL or on one of the installation's own.
func (r *Installation) startSQL(t testing.TB, suite *servers.Suite, o Options) {
	switch {
	case o.OwnSQL && o.Topology.Has(MySQLGroup):
		r.ownGroup(t)
		return
	case o.Topology.Has(MySQLGroup):
		r.onGroup(t, suite.MySQLGroup(t))
		return
	case o.OwnSQL:
		r.ownSQL(t)
	default:
		r.SQL = suite.SQL(t)
	}
	r.DSN = r.SQL.NewDatabase(t)
}

// onGroup creates the database on a group after any earlier fault. The tests' own statements go to
// the current primary.
func (r *Installation) onGroup(t testing.TB, group *servers.SQLGroup) {
	r.Group = group
	require.NoError(t, r.Group.Heal(t.Context()))
	name := r.Group.NewDatabase(t)
	r.SQL = r.Primary(t)
	cfg := must.Get(mysql.ParseDSN(r.SQL.DSN(name)))(t)
	cfg.Net, cfg.Addr = fmt.Sprintf("primary%d", groups.Add(1)), "of-the-group"
	mysql.RegisterDialContext(cfg.Net, func(ctx context.Context, _ string) (net.Conn, error) {
		primary, err := r.Group.AwaitPrimary(ctx)
		if err != nil {
			return nil, err
		}
		return (&net.Dialer{}).DialContext(ctx, "tcp", primary.Addr())
	})
	t.Cleanup(func() { mysql.DeregisterDialContext(cfg.Net) })
	r.DSN = cfg.FormatDSN()
}

// Primary returns the server that takes writes now: the current primary of a group, or the only
// server.
func (r *Installation) Primary(t testing.TB) *servers.SQLServer {
	if r.Group == nil {
		return r.SQL
	}
	return must.Get(r.Group.AwaitPrimary(t.Context()))(t)
}

// sqlAddrs returns MySQL's address for a program: all members of a group, the current primary
// first. With wires the first is named kind-mysql, the others kind-mysql-2 and so on.
func (r *Installation) sqlAddrs(t testing.TB, kind string, wired bool) string {
	addrs := []string{r.SQL.Addr()}
	if r.Group != nil {
		for _, m := range r.Group.Members() {
			if m != r.SQL {
				addrs = append(addrs, m.Addr())
			}
		}
	}
	for i := range addrs {
		if !wired {
			break
		}
		name := kind + "-mysql"
		if i > 0 {
			name = fmt.Sprintf("%s-%d", name, i+1)
		}
		addrs[i] = r.wire(t, name, addrs[i])
	}
	return strings.Join(addrs, ",")
}

// diskSize, in bytes, is enough for a MariaDB with some orders or a MySQL with its logs. Unused
// space takes no memory.
const diskSize = 512 << 20

// Disk is a small disk that a test can fill.
type Disk struct{ dir string }

// newDisk mounts a disk at dir for a test. It fails the test without the right to mount. The
// server's log is outside the disk, so a full disk does not affect it.
func newDisk(t testing.TB, dir string) *Disk {
	require.NoError(t, os.MkdirAll(dir, 0o700))
	require.NoError(t, mount(dir, diskSize),
		"the disk is a tmpfs, and its mount needs root")
	t.Cleanup(func() { require.NoError(t, unmount(dir)) })
	log := filepath.Join(t.TempDir(), "server.log")
	require.NoError(t, os.Symlink(log, filepath.Join(dir, "server.log")))
	return &Disk{dir}
}

func (d *Disk) ballast() string { return filepath.Join(d.dir, "ballast") }

// Fill writes a file that takes all free space.
func (d *Disk) Fill(t testing.TB) {
	f, err := os.Create(d.ballast())
	require.NoError(t, err)
	for block := make([]byte, 1<<20); err == nil; {
		_, err = f.Write(block)
	}
	require.ErrorIs(t, err, syscall.ENOSPC)
	require.NoError(t, f.Close())
}

// Free deletes the file.
func (d *Disk) Free(t testing.TB) {
	require.NoError(t, os.Remove(d.ballast()))
}

// shortDir creates a directory for a test. t.TempDir is too long for the path of a Unix socket.
func shortDir(t testing.TB) string {
	dir := must.Get(os.MkdirTemp("", "seckill-disk-"))(t)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// ownSQL starts a SQL server on a private disk.
func (r *Installation) ownSQL(t testing.TB) {
	r.Disk = newDisk(t, shortDir(t))
	r.SQL = must.Get(servers.StartSQL(t.Context(), r.Disk.dir))(t)
	endWith(t, r.SQL.Kill, r.SQL)
}

// ownGroup starts a MySQL group with a private disk for each member. Disk is the primary's.
func (r *Installation) ownGroup(t testing.TB) {
	dir := shortDir(t)
	var disks []*Disk
	for i := range servers.GroupMembers {
		disks = append(disks, newDisk(t, servers.MemberDir(dir, i)))
	}
	group := must.Get(servers.StartMySQLGroup(t.Context(), dir))(t)
	endWith(t, group.Stop, group)
	r.onGroup(t, group)
	r.Disk = disks[slices.Index(group.Members(), r.SQL)]
}

// endWith ends a server when the test does, and logs its end if the test failed.
func endWith(t testing.TB, end func() error, server interface{ Log() string }) {
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the end of MySQL's log:\n%s", server.Log())
		}
		require.NoError(t, end())
	})
}
