package servers

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"flashsale.dev/seckill/internal/testing/must"
)

// GroupMembers is the number of members of a group.
const GroupMembers = 3

// groupPatience limits waits for a group. The group expels a dead member after about 6 s and
// refuses its return until then.
const groupPatience = 60 * time.Second

// errNoPrimary reports that no member takes writes, because of an election or a lost majority.
var errNoPrimary = errors.New("the group has no primary")

// SQLGroup is a MySQL Group Replication of three private mysqlds with a single primary. A restarted
// member joins again and is ready when it has caught up. It is safe for concurrent use.
type SQLGroup struct {
	members []*SQLServer
	ports   []int       // group ports, in the members' order
	formed  atomic.Bool // restarted members join the group

	mu    sync.Mutex
	rules [][]string
}

// MySQLGroup starts a group for one test and stops it at cleanup. A start takes about 8 s and 400
// MB for each member; a Suite shares one.
func MySQLGroup(tb testing.TB) *SQLGroup {
	tb.Helper()
	return forTest(tb, "mysql-group", StartMySQLGroup)
}

// StartMySQLGroup runs the members with their data and logs in dir. It returns when all are online.
// The members' data are in the directories of MemberDir. The caller stops the group.
// EnvExternalSQL has no effect.
func StartMySQLGroup(ctx context.Context, dir string) (*SQLGroup, error) {
	path, err := fetched("mysql", "mysqld")
	if err != nil {
		return nil, err
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
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
				g.member(path, sqlDir(MemberDir(dir, i)), i, port))
		}
		return g, nil
	})
}

// MemberDir returns the directory of the i-th member, from 0 on, below StartMySQLGroup's directory.
// A test may mount a disk there first.
func MemberDir(dir string, i int) string { return filepath.Join(dir, fmt.Sprintf("member%d", i+1)) }

func (g *SQLGroup) first(ctx context.Context) error {
	if err := g.all(func(m *SQLServer) error { return m.first(ctx) }); err != nil {
		return err
	}
	return g.Heal(ctx)
}

// Members returns all members in any state.
func (g *SQLGroup) Members() []*SQLServer { return g.members }

// DSN returns an address of all members in the store's form:
// user:password@tcp(a:1,b:2,c:3)/database.
func (g *SQLGroup) DSN(database string) string {
	addrs := make([]string, 0, len(g.members))
	for _, m := range g.members {
		addrs = append(addrs, m.Addr())
	}
	return strings.Replace(g.members[0].DSN(database), addrs[0], strings.Join(addrs, ","), 1)
}

// Primary returns the member that takes writes and sees a majority of the group.
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

// AwaitPrimary waits for a primary that is not one of the given members.
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

// awaitGroup calls ask until it succeeds, for at most groupPatience.
func awaitGroup(ctx context.Context, ask func(context.Context) error) error {
	return await(ctx, groupPatience, 100*time.Millisecond, ask)
}

// Switch makes a member the primary of a healthy group, as an operator does before an upgrade.
func (g *SQLGroup) Switch(ctx context.Context, to *SQLServer) error {
	if err := to.exec(ctx,
		"SELECT group_replication_set_as_primary(@@server_uuid, 5)"); err != nil {
		return fmt.Errorf("switch the primary: %w", err)
	}
	others := slices.DeleteFunc(slices.Clone(g.members), func(m *SQLServer) bool { return m == to })
	_, err := g.AwaitPrimary(ctx, others...)
	return err
}

// NewDatabase creates a database for one test and returns its name. The test's cleanup drops it.
func (g *SQLGroup) NewDatabase(tb testing.TB) string {
	tb.Helper()
	primary := must.Get(g.AwaitPrimary(tb.Context()))(tb)
	name := must.Get(primary.createDatabase(tb.Context()))(tb)
	tb.Cleanup(func() {
		ctx := context.WithoutCancel(tb.Context())
		assert.NoError(tb, must.Get(g.AwaitPrimary(ctx))(tb).DropDatabase(ctx, name))
	})
	return name
}

// Stop kills all members.
func (g *SQLGroup) Stop() error { return g.discard() }

func (g *SQLGroup) discard() error { return errors.Join(g.Restore(), discardAll(g.members)) }

// Log returns the end of each member's log.
func (g *SQLGroup) Log() string { return logsOf(g.members) }

// Heal starts, resumes and joins every member after any fault. It returns when all are online. If
// there is no group any more, the member with the most transactions starts a new one.
func (g *SQLGroup) Heal(ctx context.Context) error {
	if err := g.Restore(); err != nil {
		return err
	}
	g.formed.Store(false)
	err := g.all(func(m *SQLServer) error {
		if m.Running() {
			return m.Resume() // no effect on a member that is not paused
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

// all calls a function for all members concurrently.
func (g *SQLGroup) all(do func(*SQLServer) error) error {
	problems := make([]error, len(g.members))
	var running sync.WaitGroup
	for i, m := range g.members {
		running.Go(func() { problems[i] = do(m) })
	}
	running.Wait()
	return errors.Join(problems...)
}

// bootstrap starts a group if none exists: at the first start, and after the loss of a majority.
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
