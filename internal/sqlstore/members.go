package sqlstore

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/go-sql-driver/mysql"
)

const (
	// memberPatience bounds the opening of a connection to one of several servers, and a question about its role: one that is
	// put to sleep, or cut off, answers nothing, and the next is to be asked soon.
	memberPatience = 2 * time.Second
	// roleAge is how old the knowledge may be that a server has the role it is used in, when a connection is taken out of the pool. A
	// server that lost the role says so at the next write, but a program that only reads would never hear of it.
	roleAge = 100 * time.Millisecond
)

// errNoWriter says that none of the servers takes writes, one being promoted perhaps; or that none answers a reader.
var errNoWriter = errors.New("none of the servers will do")

// members is a connector to the one of several servers that takes writes (the primary of a group, or of a pair that somebody
// else fails over), or, for readers, to any that answers. Every new connection is asked for its role, first of the server that had it last.
type members struct {
	list []*member
	last atomic.Int32 // index of the one to be asked first: it had the role last, and has not failed since
}

// member is one server.
type member struct {
	driver.Connector
	addr   string
	role   role
	plain  atomic.Bool  // it has no group's table, or we may not read it: read_only says all
	proven atomic.Int64 // when it last had the role, in ns since the epoch
	failed atomic.Int64 // when it was last found not to have it, or did not say
}

// role is what a connection is for.
type role int

const (
	writer role = iota
	reader      // any server that answers will do
)

// newMembers makes a connector of a configuration whose address lists several servers.
func newMembers(cfg *mysql.Config, addrs []string, of role) (*members, error) {
	m := &members{}
	for _, addr := range addrs {
		one := cfg.Clone()
		one.Addr = addr
		connector, err := mysql.NewConnector(one)
		if err != nil {
			return nil, err
		}
		m.list = append(m.list, &member{Connector: connector, addr: addr, role: of})
	}
	return m, nil
}

// Connect opens a connection to the server that has the role. One that fails is not the first to be asked by the next caller: a server
// that is asleep takes a caller's whole time, and another caller must not lose his on it, too.
func (m *members) Connect(ctx context.Context) (driver.Conn, error) {
	first := int(m.last.Load())
	problem := errNoWriter
	for i := range m.list {
		at := (first + i) % len(m.list)
		conn, err := m.list[at].connect(ctx)
		if err == nil {
			m.last.Store(int32(at))
			return conn, nil
		}
		m.last.CompareAndSwap(int32(at), int32((at+1)%len(m.list)))
		problem = fmt.Errorf("%w; %s: %w", problem, m.list[at].addr, err)
		if ctx.Err() != nil {
			break // the others would fail for want of time, and the sleeper be the first again
		}
	}
	return nil, problem
}

// Driver is the driver of each.
func (m *members) Driver() driver.Driver { return m.list[0].Driver() }

func (m *member) connect(ctx context.Context) (driver.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, memberPatience)
	defer cancel()
	conn, err := m.Connector.Connect(ctx)
	if err != nil || m.role == reader {
		return conn, err
	}
	c := &memberConn{fullConn: conn.(fullConn), of: m}
	if err := m.mayWrite(ctx, c.fullConn); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return c, nil
}

var errReadOnly = errors.New("it is read-only")

// mayWrite asks a server for its role. A member of a group that sees fewer than most of the others is cut off: it says for some
// seconds that it may be written to, while another has been made the primary, and what is read from it is old.
func (m *member) mayWrite(ctx context.Context, conn fullConn) error {
	asked := time.Now()
	var no int64
	err := error(nil)
	if !m.plain.Load() {
		no, err = oneNumber(ctx, conn, groupRoleSQL)
		if e, ok := errors.AsType[*mysql.MySQLError](err); ok && (e.Number == noSuchTable || e.Number == noSuchDatabase || e.Number == mayNotSelect) {
			m.plain.Store(true)
		}
	}
	if m.plain.Load() {
		no, err = oneNumber(ctx, conn, "SELECT @@GLOBAL.read_only")
	}
	if err != nil {
		return fmt.Errorf("ask for its role: %w", err)
	}
	if no != 0 {
		return errReadOnly
	}
	m.proven.Store(asked.UnixNano())
	return nil
}

// groupRoleSQL is 0 of a server that takes writes and is not with the fewer of its group; the table is empty where there is none.
const groupRoleSQL = `SELECT @@GLOBAL.read_only OR COUNT(*) > 0 AND 2 * SUM(MEMBER_STATE IN ('ONLINE', 'RECOVERING')) <= COUNT(*)
	FROM performance_schema.replication_group_members`

// The errors of a server without that table, and of an account that may not read it.
const (
	noSuchTable    = 1146
	noSuchDatabase = 1049
	mayNotSelect   = 1142
)

// oneNumber reads one number.
func oneNumber(ctx context.Context, conn fullConn, query string) (int64, error) {
	rows, err := conn.QueryContext(ctx, query, nil)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	values := make([]driver.Value, 1)
	if err := rows.Next(values); err != nil && !errors.Is(err, io.EOF) {
		return 0, err
	}
	switch v := values[0].(type) {
	case int64:
		return v, nil
	case []byte:
		var n int64
		_, err := fmt.Sscan(string(v), &n)
		return n, err
	default:
		return 0, fmt.Errorf("%q answered %v", query, v)
	}
}
