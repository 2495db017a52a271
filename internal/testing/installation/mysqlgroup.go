package installation

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testing/servers"
)

// groups numbers the installations that have a group: each has a network of its own in the driver, which keeps them for good.
var groups atomic.Int64 //nolint:gochecknoglobals // so is what it numbers

// groupMembers is how many a group has.
const groupMembers = 3

// onGroup puts the database on a group, whatever was done to that before. The tests themselves ask whoever is the
// primary when they ask.
func (r *Installation) onGroup(t testing.TB, group *servers.SQLGroup) {
	t.Helper()
	r.Group = group
	require.NoError(t, r.Group.Heal(t.Context()))
	name := r.Group.NewDatabase(t)
	r.SQL = r.Primary(t)
	cfg, err := mysql.ParseDSN(r.SQL.DSN(name))
	require.NoError(t, err)
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

// Primary is the server that takes writes now: of a group whoever has been chosen, else the only one.
func (r *Installation) Primary(t testing.TB) *servers.SQLServer {
	t.Helper()
	if r.Group == nil {
		return r.SQL
	}
	primary, err := r.Group.AwaitPrimary(t.Context())
	require.NoError(t, err)
	return primary
}

// sqlAddrs is what a program is informed of where MySQL is: all members of a group, the present primary first. Over wires the first is
// named kind-mysql, the others kind-mysql-2 and so on.
func (r *Installation) sqlAddrs(t testing.TB, kind string, wired bool) string {
	t.Helper()
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
