package servers

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// groupName is the name of every group, because members of different groups never connect.
const groupName = "5ecc1111-0000-4000-8000-000000000001"

// errJoining reports that a member has not finished its join.
var errJoining = errors.New("not online in its group yet")

// member returns one mysqld of a group that has not started.
//
// The group suspects a silent member after 5 s, which is not configurable, and expels it at once.
// Any longer timeout ends only when MySQL processes its suspicions, every 15 s. A member in a
// minority leaves after 5 s more, so clients that wait for its commit get an error. It then takes
// no writes. After a failover the new primary holds transactions back until it has applied the old
// primary's commits.
func (g *SQLGroup) member(path string, dir sqlDir, i, port int) *SQLServer {
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
	m.prepare = func(ctx context.Context) error { return dir.fill(ctx, mysqlTemplate(path)) }
	m.ready = func(ctx context.Context) error { return g.memberReady(ctx, m) }
	return m
}

// memberReady returns nil when a member answers. In a formed group the member must also be online,
// and memberReady makes it join.
func (g *SQLGroup) memberReady(ctx context.Context, m *SQLServer) error {
	if err := m.isReady(ctx); err != nil || !g.formed.Load() {
		return err
	}
	return m.join(ctx)
}

// join makes a member start replication and returns nil when it is online. The caller calls it
// again after any error, because the group refuses a server that it still counts as a member. A
// member may recover for too long, because its source died meanwhile. join then restarts it, as an
// operator does.
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

// stuck reports whether a member's recovery has exceeded its time limit.
func (s *SQLServer) stuck() bool {
	now := time.Now().UnixNano()
	s.recovers.CompareAndSwap(0, now)
	return now-s.recovers.Load() > int64(groupPatience/3)
}

// state returns a member's own state. It returns "" before the member's first join.
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

// leads reports whether a member takes writes and sees a majority of its group. A member in a
// minority reports for some seconds that it is writable, but it is not.
func (s *SQLServer) leads(ctx context.Context) (bool, error) {
	var readOnly, all, well int
	err := s.row(ctx, `SELECT @@GLOBAL.super_read_only, COUNT(*),
			COALESCE(SUM(MEMBER_STATE IN ('ONLINE', 'RECOVERING')), 0)
		FROM performance_schema.replication_group_members`, &readOnly, &all, &well)
	return err == nil && readOnly == 0 && all > 0 && 2*well > all && s.online(ctx), err
}
