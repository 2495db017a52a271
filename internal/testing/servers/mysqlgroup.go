package servers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// GroupMembers is how many a group has.
const GroupMembers = 3

// groupPatience bounds the waits for a group: a member that died is given up after some 6 s, and
// one that comes back is kept out until then.
const groupPatience = 60 * time.Second

// errNoPrimary says that no member takes writes: one is being chosen, or most of the members are
// away.
var errNoPrimary = errors.New("the group has no primary")

// SQLGroup is a MySQL Group Replication of three private mysqlds with a single primary. A member
// that is restarted joins again and is ready when it has caught up. It is safe for concurrent use.
type SQLGroup struct {
	members []*SQLServer
	ports   []int       // of the members' talk among themselves, in their order
	formed  atomic.Bool // members join by themselves

	mu    sync.Mutex
	rules [][]string
}

// MySQLGroup starts a group for one test (some 8 s, 400 MB a member; a Suite shares one) and stops
// it at cleanup.
func MySQLGroup(tb testing.TB) *SQLGroup {
	tb.Helper()
	return forTest(tb, "mysql-group", StartMySQLGroup)
}

// StartMySQLGroup runs the members with their data and logs in dir and returns when all are online.
// The data directory is made once and copied to each, at MemberDir. The caller stops it.
// EnvExternalSQL has no part in it.
func StartMySQLGroup(ctx context.Context, dir string) (*SQLGroup, error) {
	path, err := mysqldPath()
	if err != nil {
		return nil, err
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return nil, err
	}
	template := sqlDir(filepath.Join(dir, "template"))
	if err := os.MkdirAll(template.tmp(), 0o700); err != nil {
		return nil, err
	}
	if err := template.fill(ctx, path, "--initialize-insecure", noFilePriv,
		"--init-file="+template.initFile()); err != nil {
		return nil, err
	}
	return launchNew(ctx, "a MySQL group", func() (*SQLGroup, error) {
		ports, err := freePorts(2 * GroupMembers)
		if err != nil {
			return nil, err
		}
		g := &SQLGroup{ports: ports[:GroupMembers]}
		for i, port := range ports[GroupMembers:] {
			g.members = append(g.members,
				g.member(path, template, sqlDir(MemberDir(dir, i)), i, port))
		}
		return g, nil
	})
}

// MemberDir is where StartMySQLGroup keeps the i-th member, from 0 on, under the directory it was
// given: a disk may be mounted there before.
func MemberDir(dir string, i int) string { return filepath.Join(dir, fmt.Sprintf("member%d", i+1)) }

func (g *SQLGroup) first(ctx context.Context) error {
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

// DSN names all members in one address, in the form that the store reads:
// user:password@tcp(a:1,b:2,c:3)/database.
func (g *SQLGroup) DSN(database string) string {
	addrs := make([]string, 0, len(g.members))
	for _, m := range g.members {
		addrs = append(addrs, m.Addr())
	}
	return strings.Replace(g.members[0].DSN(database), addrs[0], strings.Join(addrs, ","), 1)
}

// Primary is the member that takes writes now, and has most of the group with it.
func (g *SQLGroup) Primary(ctx context.Context) (*SQLServer, error) {
	err := errNoPrimary
	for _, m := range g.members {
		if !m.Running() {
			continue
		}
		leads, problem := m.leads(ctx)
		if leads {
			return m, nil
		}
		err = errors.Join(err, problem)
	}
	return nil, err
}

// AwaitPrimary waits until there is one that is none of those given.
func (g *SQLGroup) AwaitPrimary(ctx context.Context, not ...*SQLServer) (*SQLServer, error) {
	var primary *SQLServer
	err := awaitGroup(ctx, func(ctx context.Context) (err error) {
		primary, err = g.Primary(ctx)
		if err == nil && slices.Contains(not, primary) {
			err = fmt.Errorf("%s is still the primary", primary.Addr())
		}
		return err
	})
	return primary, err
}

// awaitGroup asks until there is no error, for groupPatience at most.
func awaitGroup(ctx context.Context, ask func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, groupPatience)
	defer cancel()
	return await(ctx, 100*time.Millisecond, func() error { return ask(ctx) })
}

// Switch makes a member the primary while all are well, as an operator does before an upgrade.
func (g *SQLGroup) Switch(ctx context.Context, to *SQLServer) error {
	if err := to.exec(ctx,
		"SELECT group_replication_set_as_primary(@@server_uuid, 5)"); err != nil {
		return fmt.Errorf("switch the primary: %w", err)
	}
	others := slices.DeleteFunc(slices.Clone(g.members), func(m *SQLServer) bool { return m == to })
	_, err := g.AwaitPrimary(ctx, others...)
	return err
}

// NewDatabase creates a database for one test and returns its name; it is dropped at the test's
// cleanup.
func (g *SQLGroup) NewDatabase(tb testing.TB) string {
	tb.Helper()
	primary, err := g.AwaitPrimary(tb.Context())
	check(tb, err)
	name, err := primary.createDatabase(tb.Context())
	check(tb, err)
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

func (g *SQLGroup) discard() error { return errors.Join(g.Restore(), discardAll(g.members)) }

// Log is the ends of the members' logs.
func (g *SQLGroup) Log() string { return logsOf(g.members) }

// Heal brings every member up and into the group, whatever was done to them, and returns when all
// are online. Where there is no group any more, the member that has the most begins one anew.
func (g *SQLGroup) Heal(ctx context.Context) error {
	if err := g.Restore(); err != nil {
		return err
	}
	g.formed.Store(false)
	err := g.all(func(m *SQLServer) error {
		if m.Running() {
			return m.Resume() // harmless where it was not paused
		}
		return m.Restart(ctx)
	})
	if err == nil {
		err = g.bootstrap(ctx)
	}
	if err == nil {
		g.formed.Store(true)
		err = g.all(func(m *SQLServer) error { return awaitGroup(ctx, m.join) })
	}
	if err != nil {
		return fmt.Errorf("heal the group: %w", err)
	}
	return nil
}

// all does a thing to all members at once.
func (g *SQLGroup) all(do func(*SQLServer) error) error {
	problems := make([]error, len(g.members))
	var running sync.WaitGroup
	for i, m := range g.members {
		running.Go(func() { problems[i] = do(m) })
	}
	running.Wait()
	return errors.Join(problems...)
}

// bootstrap begins a group where there is none: first of all, and after most of the members were
// lost at once.
func (g *SQLGroup) bootstrap(ctx context.Context) error {
	first, most := g.members[0], ""
	for _, m := range g.members {
		if m.online(ctx) {
			return nil
		}
		var has string
		var more bool
		query := "SELECT @@GLOBAL.gtid_executed, GTID_SUBSET('" + most +
			"', @@GLOBAL.gtid_executed)"
		if err := m.row(ctx, query, &has, &more); err != nil {
			return err
		}
		if more {
			first, most = m, strings.ReplaceAll(has, "\n", "")
		}
	}
	for _, m := range g.members {
		err := m.exec(ctx, "CHANGE REPLICATION SOURCE TO SOURCE_USER = '"+sqlUser+
			"', SOURCE_PASSWORD = '"+sqlPassword+"' FOR CHANNEL 'group_replication_recovery'")
		if err != nil {
			return err
		}
	}
	for _, statement := range []string{
		"SET GLOBAL group_replication_bootstrap_group = ON", "START GROUP_REPLICATION",
		"SET GLOBAL group_replication_bootstrap_group = OFF",
	} {
		if err := first.exec(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}
