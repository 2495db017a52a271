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
	"time"
)

// groupName is every group's: their members never meet.
const groupName = "5ecc1111-0000-4000-8000-000000000001"

// errJoining says that a member is on its way into the group.
var errJoining = errors.New("not online in its group yet")

// member is one mysqld of a group that has not been started. A member that is silent is suspected
// after 5 s, which can't be set, and given up at once: any longer wait ends only where the
// suspicions are processed, every 15 s. One that is with the fewer gives up after 5 s more, so that
// whoever waits for it to commit is answered, and takes no writes from then on. After a failover
// the new primary holds transactions back until it has applied what the old one had committed.
func (g *SQLGroup) member(path string, template, dir sqlDir, i, port int) *SQLServer {
	seeds := make([]string, 0, len(g.ports))
	for _, p := range g.ports {
		seeds = append(seeds, loopback(p))
	}
	m := newSQL(fmt.Sprintf("mysqld (member %d)", i+1), path, dir, port, append(mysqlArgs(),
		"--report-host=127.0.0.1", "--server-id="+strconv.Itoa(i+1), "--gtid-mode=ON",
		"--enforce-gtid-consistency=ON", "--plugin-load-add=group_replication.so",
		"--group-replication-group-name="+groupName, "--group-replication-start-on-boot=OFF",
		"--group-replication-local-address="+loopback(g.ports[i]),
		"--group-replication-group-seeds="+strings.Join(seeds, ","),
		"--group-replication-member-expel-timeout=0",
		"--group-replication-unreachable-majority-timeout=5",
		"--group-replication-consistency=BEFORE_ON_PRIMARY_FAILOVER",
		"--group-replication-recovery-get-public-key=ON",
		"--group-replication-message-cache-size=134217728")...)
	m.prepare = func(context.Context) error { return copyTemplate(template, dir) }
	m.ready = func(ctx context.Context) error { return g.memberReady(ctx, m) }
	return m
}

// copyTemplate makes a member's data directory. auto.cnf, which holds a server's identity, is not
// copied.
func copyTemplate(template, dir sqlDir) error {
	if err := dir.clear(); err != nil {
		return err
	}
	if err := os.CopyFS(dir.data(), os.DirFS(template.data())); err != nil {
		return fmt.Errorf("copy a data directory: %w", err)
	}
	return os.Remove(filepath.Join(dir.data(), "auto.cnf"))
}

// memberReady says nil when a member answers and, once there is a group, is online in it; one that
// is not joins.
func (g *SQLGroup) memberReady(ctx context.Context, m *SQLServer) error {
	if err := m.isReady(ctx); err != nil || !g.formed.Load() {
		return err
	}
	return m.join(ctx)
}

// join has a member that is in no group join one, and says nil when it is online. The caller asks
// again after any error: a group lets no server in that it believes to be a member still. A member
// that recovers for too long, because its source has died meanwhile, begins anew, as an operator
// would have it do.
func (s *SQLServer) join(ctx context.Context) error {
	state, err := s.state(ctx)
	switch {
	case err != nil:
		return err
	case state == "ONLINE":
		s.recovers.Store(0)
		return nil
	case state == "RECOVERING" && !s.stuck():
	case state == "RECOVERING" || state == "ERROR":
		s.recovers.Store(0)
		err = s.exec(ctx, "STOP GROUP_REPLICATION")
	case state == "OFFLINE" || state == "":
		err = s.exec(ctx, "START GROUP_REPLICATION")
	}
	return errors.Join(fmt.Errorf("%w: %s says %q", errJoining, s.Addr(), state), err)
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
	err := s.row(ctx, `SELECT MEMBER_STATE FROM performance_schema.replication_group_members
		WHERE MEMBER_ID = @@server_uuid OR MEMBER_ID = ''`, &state)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return state, err
}

func (s *SQLServer) online(ctx context.Context) bool {
	state, err := s.state(ctx)
	return err == nil && state == "ONLINE"
}

// leads reports whether a member takes writes and sees most of its group: one that is cut off with
// the fewer says for some seconds that it may write, and can't.
func (s *SQLServer) leads(ctx context.Context) (bool, error) {
	var readOnly, all, well int
	err := s.row(ctx, `SELECT @@GLOBAL.super_read_only, COUNT(*),
			COALESCE(SUM(MEMBER_STATE IN ('ONLINE', 'RECOVERING')), 0)
		FROM performance_schema.replication_group_members`, &readOnly, &all, &well)
	return err == nil && readOnly == 0 && all > 0 && 2*well > all && s.online(ctx), err
}
