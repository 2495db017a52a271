package servers

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// groupName is every group's: their members never meet.
const groupName = "5ecc1111-0000-4000-8000-000000000001"

// member is one mysqld of a group that has not been started. It keeps MySQL's own defaults for durability, as a single one does.
func (g *SQLGroup) member(path, template, dir string, i, port int) *SQLServer {
	d := sqlDir(dir)
	server := &SQLServer{base: sqlConfigOf(port), dir: d}
	server.Server = &Server{
		name:    fmt.Sprintf("mysqld (member %d)", i+1),
		proc:    process{command: command{path: path, args: g.memberArgs(d, i, port), dir: dir, log: d.log()}},
		timeout: 90 * time.Second,
		prepare: func(context.Context) error { return copyTemplate(template, d) },
		wipe:    func() error { return os.RemoveAll(d.data()) },
		ready:   func(ctx context.Context) error { return g.memberReady(ctx, server) },
	}
	return server
}

// memberArgs: a member that is silent is suspected after 5 s, which can't be set, and given up at once: any longer wait ends only
// where the suspicions are processed, every 15 s. One that is with the fewer gives up after 5 s more, so that whoever waits for it
// to commit is answered, and takes no writes from then on. After a failover the new primary holds transactions back until
// it has applied what the old one had committed.
func (g *SQLGroup) memberArgs(dir sqlDir, i, port int) []string {
	seeds := make([]string, 0, len(g.ports))
	for _, p := range g.ports {
		seeds = append(seeds, loopback(p))
	}
	args := []string{
		"--no-defaults", "--datadir=" + dir.data(), "--tmpdir=" + dir.tmp(), "--socket=" + filepath.Join(string(dir), "sql.sock"),
		"--pid-file=" + filepath.Join(string(dir), "sql.pid"), "--port=" + strconv.Itoa(port), "--bind-address=127.0.0.1", "--skip-name-resolve",
		"--character-set-server=utf8mb4", "--max-connections=300", "--default-time-zone=+00:00",
		"--secure-file-priv=NULL", "--mysqlx=OFF", "--performance-schema=OFF",
		"--report-host=127.0.0.1", "--server-id=" + strconv.Itoa(i+1), "--gtid-mode=ON", "--enforce-gtid-consistency=ON",
		"--plugin-load-add=group_replication.so", "--group-replication-group-name=" + groupName,
		"--group-replication-start-on-boot=OFF", "--group-replication-local-address=" + loopback(g.ports[i]),
		"--group-replication-group-seeds=" + strings.Join(seeds, ","),
		"--group-replication-member-expel-timeout=0", "--group-replication-unreachable-majority-timeout=5",
		"--group-replication-consistency=BEFORE_ON_PRIMARY_FAILOVER",
		"--group-replication-recovery-get-public-key=ON", "--group-replication-message-cache-size=134217728",
	}
	return append(args, runAsRoot()...)
}

// makeTemplate fills a data directory that has our account, once for all members.
func makeTemplate(ctx context.Context, path, dir string) error {
	return prepareSQL(ctx, sqlDir(dir), sqlProgram{install: func(string) (string, []string) {
		d := sqlDir(dir)
		return path, []string{
			"--no-defaults", "--initialize-insecure", "--datadir=" + d.data(), "--tmpdir=" + d.tmp(),
			"--secure-file-priv=NULL", "--init-file=" + d.initFile(),
		}
	}})
}

// copyTemplate makes a member's data directory. auto.cnf, which holds a server's identity, is not copied.
func copyTemplate(template string, dir sqlDir) error {
	if err := os.MkdirAll(dir.tmp(), 0o700); err != nil {
		return err
	}
	if err := os.RemoveAll(dir.data()); err != nil {
		return err
	}
	if err := os.CopyFS(dir.data(), os.DirFS(sqlDir(template).data())); err != nil {
		return fmt.Errorf("copy a data directory: %w", err)
	}
	return os.Remove(filepath.Join(dir.data(), "auto.cnf"))
}

// memberReady says nil when a member answers and, once there is a group, is online in it; one that is not joins.
func (g *SQLGroup) memberReady(ctx context.Context, m *SQLServer) error {
	if err := askSQL(ctx, m.base, m.dir.data()); err != nil {
		return err
	}
	g.mu.Lock()
	formed := g.formed
	g.mu.Unlock()
	if !formed {
		return nil
	}
	return m.join(ctx)
}

// errJoining says that a member is on its way into the group.
var errJoining = errors.New("not online in its group yet")

// join has a member that is in no group join one, and says nil when it is online. What goes wrong on the way is tried again
// by whoever asks again: a group lets nobody in that it believes to be a member still. One that recovers and recovers, because whoever
// was to report it where to begin has died meanwhile, begins anew, as an operator would have it do.
func (s *SQLServer) join(ctx context.Context) error {
	err := s.online(ctx)
	if err == nil {
		s.recovers.Store(0)
		return nil
	}
	switch state, stateErr := s.state(ctx); {
	case stateErr != nil:
		return stateErr
	case state == "RECOVERING" && !s.stuck():
	case state == "RECOVERING" || state == "ERROR":
		s.recovers.Store(0)
		err = errors.Join(err, s.execute(ctx, "STOP GROUP_REPLICATION"))
	case state == "OFFLINE" || state == "":
		err = errors.Join(err, s.execute(ctx, "START GROUP_REPLICATION"))
	}
	return err
}

// stuck reports whether a member has been recovering for longer than it should.
func (s *SQLServer) stuck() bool {
	now := time.Now().UnixNano()
	s.recovers.CompareAndSwap(0, now)
	return now-s.recovers.Load() > int64(groupPatience/3)
}

// state is what a member says of itself; "" before it has ever been in a group.
func (s *SQLServer) state(ctx context.Context) (string, error) {
	var state string
	err := s.row(ctx, `SELECT MEMBER_STATE FROM performance_schema.replication_group_members WHERE MEMBER_ID = @@server_uuid OR MEMBER_ID = ''`, &state)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return state, err
}

func (s *SQLServer) online(ctx context.Context) error {
	state, err := s.state(ctx)
	if err == nil && state != "ONLINE" {
		err = fmt.Errorf("%w: %s says %q", errJoining, s.base.Addr, state)
	}
	return err
}

// Heal brings every member up and into the group, whatever was done to them, and returns when all are online. Where nobody is
// in a group any more, the member that has the most begins one anew.
func (g *SQLGroup) Heal(ctx context.Context) error {
	if err := g.Restore(); err != nil {
		return err
	}
	g.setFormed(false)
	err := g.all(func(m *SQLServer) error {
		if m.Running() {
			return m.Resume() // harmless where it was not paused
		}
		return m.Restart(ctx)
	})
	if err != nil {
		return fmt.Errorf("heal the group: %w", err)
	}
	if err := g.bootstrap(ctx); err != nil {
		return err
	}
	g.setFormed(true)
	return g.all(func(m *SQLServer) error {
		if err := awaitGroup(ctx, m.join); err != nil {
			return fmt.Errorf("heal the group: %w", err)
		}
		return nil
	})
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

func (g *SQLGroup) setFormed(formed bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.formed = formed
}

// bootstrap begins a group where there is none: first of all, and after most of the members were lost at once.
func (g *SQLGroup) bootstrap(ctx context.Context) error {
	first, most := g.members[0], ""
	for _, m := range g.members {
		if m.online(ctx) == nil {
			return nil
		}
		var has string
		var more bool
		if err := m.row(ctx, "SELECT @@GLOBAL.gtid_executed, GTID_SUBSET('"+most+"', @@GLOBAL.gtid_executed)", &has, &more); err != nil {
			return err
		}
		if more {
			first, most = m, strings.ReplaceAll(has, "\n", "")
		}
	}
	for _, m := range g.members {
		err := m.execute(ctx, "CHANGE REPLICATION SOURCE TO SOURCE_USER = '"+sqlUser+"', SOURCE_PASSWORD = '"+sqlPassword+"' FOR CHANNEL 'group_replication_recovery'")
		if err != nil {
			return fmt.Errorf("configure the recovery of a member: %w", err)
		}
	}
	return first.begin(ctx)
}

func (s *SQLServer) begin(ctx context.Context) error {
	for _, statement := range []string{
		"SET GLOBAL group_replication_bootstrap_group = ON", "START GROUP_REPLICATION", "SET GLOBAL group_replication_bootstrap_group = OFF",
	} {
		if err := s.execute(ctx, statement); err != nil {
			return fmt.Errorf("begin a group: %w", err)
		}
	}
	return nil
}
