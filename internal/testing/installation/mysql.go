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

// groups numbers the installations that have a group: each has a network of its own in the driver,
// which keeps them for good.
var groups atomic.Int64 //nolint:gochecknoglobals // so is what it numbers

// startSQL makes a database on the suite's MySQL, or on one of the installation's own.
func (r *Installation) startSQL(t testing.TB, suite *servers.Suite, o Options) {
	switch {
	case o.OwnSQL && o.Topology.MySQLGroup:
		r.ownGroup(t)
		return
	case o.Topology.MySQLGroup:
		r.onGroup(t, suite.MySQLGroup(t))
		return
	case o.OwnSQL:
		r.ownSQL(t)
	default:
		r.SQL = suite.MariaDB(t)
	}
	r.DSN = r.SQL.NewDatabase(t)
}

// onGroup puts the database on a group, whatever was done to that before. The tests themselves ask
// whoever is the primary when they ask.
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

// Primary is the server that takes writes now: of a group whoever has been chosen, else the only
// one.
func (r *Installation) Primary(t testing.TB) *servers.SQLServer {
	if r.Group == nil {
		return r.SQL
	}
	primary := must.Get(r.Group.AwaitPrimary(t.Context()))(t)
	return primary
}

// sqlAddrs is where a program finds MySQL: all members of a group, the present primary first. Over
// wires the first is named kind-mysql, the others kind-mysql-2 and so on.
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

// diskSize holds a MariaDB that has been installed and some orders, or a MySQL with its logs, in
// bytes; what is not used of it takes no memory.
const diskSize = 512 << 20

// Disk is a small disk of its own, which can be full.
type Disk struct{ dir string }

// newDisk mounts one at dir for a test. It needs the right to mount; a test that lacks it fails and
// says so. A server's log lies elsewhere: what it says of a full disk must not be lost to the full
// disk.
func newDisk(t testing.TB, dir string) *Disk {
	require.NoError(t, os.MkdirAll(dir, 0o700))
	require.NoError(t, mount(dir, diskSize),
		"a disk that can be full is a tmpfs, and mounting one takes root")
	t.Cleanup(func() { require.NoError(t, unmount(dir)) })
	log := filepath.Join(t.TempDir(), "server.log")
	require.NoError(t, os.Symlink(log, filepath.Join(dir, "server.log")))
	return &Disk{dir}
}

func (d *Disk) ballast() string { return filepath.Join(d.dir, "ballast") }

// Fill writes a file that leaves not a byte free.
func (d *Disk) Fill(t testing.TB) {
	f, err := os.Create(d.ballast())
	require.NoError(t, err)
	for block := make([]byte, 1<<20); err == nil; {
		_, err = f.Write(block)
	}
	require.ErrorIs(t, err, syscall.ENOSPC)
	require.NoError(t, f.Close())
}

// Free takes the file away.
func (d *Disk) Free(t testing.TB) {
	require.NoError(t, os.Remove(d.ballast()))
}

// shortDir is a directory for a test that is not t.TempDir: a socket's path is short.
func shortDir(t testing.TB) string {
	dir := must.Get(os.MkdirTemp("", "seckill-disk-"))(t)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// ownSQL starts a MariaDB on a disk of its own.
func (r *Installation) ownSQL(t testing.TB) {
	r.Disk = newDisk(t, shortDir(t))
	r.SQL = must.Get(servers.StartMariaDB(t.Context(), r.Disk.dir))(t)
	endWith(t, r.SQL.Kill, r.SQL)
}

// ownGroup starts a MySQL group whose members have disks of their own; Disk is that of the primary.
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

func endWith(t testing.TB, end func() error, server interface{ Log() string }) {
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the end of MySQL's log:\n%s", server.Log())
		}
		require.NoError(t, end())
	})
}
