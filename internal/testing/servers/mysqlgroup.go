package servers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// SQLGroup is a MySQL Group Replication of private mysqlds with a single primary. A member that is restarted joins again and
// is ready when it has caught up. It is safe for concurrent use.
type SQLGroup struct {
	members []*SQLServer
	ports   []int // of the members' talk among themselves, in their order

	mu     sync.Mutex
	formed bool // members join by themselves
	rules  [][]string
}

// errNoPrimary says that no member takes writes: one is being chosen, or most of the members are away.
var errNoPrimary = errors.New("the group has no primary")

// groupPatience bounds the waits for a group: a member that died is given up after some 6 s, and one that comes back is
// kept out until then.
const groupPatience = 60 * time.Second

// MySQLGroup starts a group of n members for one test (some 8 s, 400 MB each; a Suite shares one of three) and stops it at cleanup.
func MySQLGroup(tb testing.TB, n int) *SQLGroup {
	tb.Helper()
	return forTest(tb, "mysql-group", func(ctx context.Context, dir string) (*SQLGroup, error) {
		return StartMySQLGroup(ctx, dir, n)
	})
}

// StartMySQLGroup runs n members with their data and logs in dir and returns when all are online. The data directory is made
// once and copied to each, at MemberDir. The caller stops it. EnvExternalSQL has no part in it.
func StartMySQLGroup(ctx context.Context, dir string, n int) (*SQLGroup, error) {
	path, err := mysqldPath()
	if err != nil {
		return nil, err
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return nil, fmt.Errorf("start a MySQL group: %w", err)
	}
	template := filepath.Join(dir, "template")
	if err := makeTemplate(ctx, path, template); err != nil {
		return nil, fmt.Errorf("start a MySQL group: %w", err)
	}
	return retryPorts(func() (*SQLGroup, error) {
		ports, err := freePorts(2 * n)
		if err != nil {
			return nil, err
		}
		g := &SQLGroup{ports: ports[:n]}
		for i := range n {
			g.members = append(g.members, g.member(path, template, MemberDir(dir, i), i, ports[n+i]))
		}
		if err := g.start(ctx); err != nil {
			return nil, fmt.Errorf("start a MySQL group: %w", errors.Join(err, g.discard()))
		}
		return g, nil
	})
}

// MemberDir is where StartMySQLGroup keeps the i-th member, from 0 on, under the directory it was given: a disk may be mounted there before.
func MemberDir(dir string, i int) string { return filepath.Join(dir, fmt.Sprintf("member%d", i+1)) }

func (g *SQLGroup) start(ctx context.Context) error {
	err := g.all(func(m *SQLServer) error {
		if err := os.MkdirAll(string(m.dir), 0o700); err != nil {
			return err
		}
		return m.first(ctx)
	})
	if err != nil {
		return err
	}
	return g.Heal(ctx)
}

// Members are all of them, whatever their state.
func (g *SQLGroup) Members() []*SQLServer { return g.members }

// DSN names all members in one address, in the form that the store reads: user:password@tcp(a:1,b:2,c:3)/database.
func (g *SQLGroup) DSN(database string) string {
	alone := g.members[0].DSN(database)
	return strings.Replace(alone, "("+g.members[0].base.Addr+")", "("+strings.Join(g.Addrs(), ",")+")", 1)
}

// Addrs are the members' addresses, host:port.
func (g *SQLGroup) Addrs() []string {
	addrs := make([]string, 0, len(g.members))
	for _, m := range g.members {
		addrs = append(addrs, m.base.Addr)
	}
	return addrs
}

// Primary is the member that takes writes now, and has most of the group with it.
func (g *SQLGroup) Primary(ctx context.Context) (*SQLServer, error) {
	err := errNoPrimary
	for _, m := range g.members {
		if !m.Running() {
			continue
		}
		leads, leadsErr := m.leads(ctx)
		if leads {
			return m, nil
		}
		err = errors.Join(err, leadsErr)
	}
	return nil, err
}

// AwaitPrimary waits until there is one that is none of those given.
func (g *SQLGroup) AwaitPrimary(ctx context.Context, not ...*SQLServer) (*SQLServer, error) {
	var primary *SQLServer
	err := awaitGroup(ctx, func(ctx context.Context) (err error) {
		if primary, err = g.Primary(ctx); err != nil {
			return err
		}
		for _, m := range not {
			if m == primary {
				return fmt.Errorf("%s is still the primary", m.base.Addr)
			}
		}
		return nil
	})
	return primary, err
}

// Switch makes a member the primary while all are well, as an operator does before an upgrade.
func (g *SQLGroup) Switch(ctx context.Context, to *SQLServer) error {
	if err := to.execute(ctx, "SELECT group_replication_set_as_primary(@@server_uuid, 5)"); err != nil {
		return fmt.Errorf("switch the primary: %w", err)
	}
	_, err := g.AwaitPrimary(ctx, g.others(to)...)
	return err
}

func (g *SQLGroup) others(than *SQLServer) []*SQLServer {
	var others []*SQLServer
	for _, m := range g.members {
		if m != than {
			others = append(others, m)
		}
	}
	return others
}

// NewDatabase creates a database for one test and returns its name; it is dropped at the test's cleanup.
func (g *SQLGroup) NewDatabase(tb testing.TB) string {
	tb.Helper()
	primary, err := g.AwaitPrimary(tb.Context())
	if err != nil {
		tb.Fatalf("servers: %v", err)
	}
	name, err := primary.CreateDatabase(tb.Context())
	if err != nil {
		tb.Fatalf("servers: %v", err)
	}
	tb.Cleanup(func() {
		ctx := context.WithoutCancel(tb.Context())
		primary, err := g.AwaitPrimary(ctx)
		if err == nil {
			err = primary.DropDatabase(ctx, name)
		}
		if err != nil {
			tb.Errorf("servers: %v", err)
		}
	})
	return name
}

// Stop ends all members, by force.
func (g *SQLGroup) Stop() error { return g.discard() }

// discard ends all members.
func (g *SQLGroup) discard() error {
	problems := []error{g.Restore()}
	for _, m := range g.members {
		problems = append(problems, m.discard())
	}
	return errors.Join(problems...)
}

// Log is the ends of the members' logs.
func (g *SQLGroup) Log() string {
	var all strings.Builder
	for i, m := range g.members {
		fmt.Fprintf(&all, "member %d:\n%s\n", i+1, m.Log())
	}
	return all.String()
}
