package primary

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"time"

	"github.com/go-sql-driver/mysql"

	"flashsale.dev/seckill/internal/cause"
)

const (
	// ServerTimeout bounds one server's connect and role query. A server that hangs or is cut off
	// never answers, and the connector must try the next one soon.
	ServerTimeout = 2 * time.Second
	// RoleTTL is how long a server's answer about its role is valid. A write to a demoted server
	// fails, but a program that only reads would never detect the failover.
	RoleTTL = 100 * time.Millisecond
)

var (
	errNoServer = errors.New("no server is usable")
	errReadOnly = errors.New("the server is read-only")
)

// connector tries several servers in turn, beginning with the one that was usable last.
type connector struct {
	servers []*server
	first   atomic.Int32 // index of the server to try first
}

// server is one of a connector's servers. Times are nanoseconds since the Unix epoch.
type server struct {
	driver.Connector
	addr         string
	anyRole      bool         // does not query the role
	noGroupTable atomic.Bool  // no table of group members, or no right to read it
	confirmedAt  atomic.Int64 // time of its last answer that it is writable
	refusedAt    atomic.Int64 // time of its last refusal or timeout
}

// NewConnector returns a connector to the server of cfg that accepts writes. With one address it
// connects there without a query of the role.
func NewConnector(cfg *mysql.Config) (driver.Connector, error) {
	if len(Addresses(cfg)) < 2 {
		return mysql.NewConnector(cfg)
	}
	return newConnector(cfg, false)
}

// NewReadConnector returns a connector to any server of cfg that answers, primary or replica.
func NewReadConnector(cfg *mysql.Config) (driver.Connector, error) {
	return newConnector(cfg, true)
}

// newConnector makes a connector with one driver connector per address.
func newConnector(cfg *mysql.Config, anyRole bool) (driver.Connector, error) {
	c := &connector{}
	list, _, _ := net.SplitHostPort(cfg.Addr) // an error: the driver set no name for TLS
	for _, addr := range Addresses(cfg) {
		one := cfg.Clone()
		one.Addr = addr
		// The driver took the whole list for the host whose certificate it verifies.
		if one.TLS != nil && one.TLS.ServerName == list {
			one.TLS.ServerName = "" // NewConnector sets the host of addr
		}
		inner, err := mysql.NewConnector(one)
		if err != nil {
			return nil, err
		}
		c.servers = append(c.servers, &server{Connector: inner, addr: addr, anyRole: anyRole})
	}
	return c, nil
}

// Connect opens a connection to the first usable server. The error names every server that failed.
// Its cause is that of one which does not answer, if there is any, because it may be the primary.
func (c *connector) Connect(ctx context.Context) (driver.Conn, error) {
	first := int(c.first.Load())
	problem, readOnly := errNoServer, true
	for i := range c.servers {
		at := (first + i) % len(c.servers)
		conn, err := c.servers[at].connect(ctx)
		if err == nil {
			c.first.Store(int32(at))
			return conn, nil
		}
		// A server that hangs uses a caller's whole deadline, so the next caller begins with
		// another.
		c.first.CompareAndSwap(int32(at), int32((at+1)%len(c.servers)))
		problem = fmt.Errorf("%w; %s: %w", problem, c.servers[at].addr, err)
		readOnly = readOnly && errors.Is(err, errReadOnly)
		if ctx.Err() != nil {
			// The other servers would fail for lack of time, and c.first would then be the hanging
			// one again.
			break
		}
	}
	if readOnly {
		problem = cause.With(problem, cause.ReadOnly)
	}
	return nil, problem
}

// Driver returns the driver of every server.
func (c *connector) Driver() driver.Driver { return c.servers[0].Driver() }

// connect opens a connection and checks the server's role.
func (s *server) connect(ctx context.Context) (driver.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, ServerTimeout)
	defer cancel()
	inner, err := s.Connector.Connect(ctx)
	if err != nil || s.anyRole {
		return inner, err
	}
	c := newConn(inner, s)
	if err := s.checkWritable(ctx, c); err != nil {
		return nil, errors.Join(err, inner.Close())
	}
	return c, nil
}

// writableSQL is 0 for a server that accepts writes and is connected to a majority of its group. A
// member in the minority still reports itself writable for some seconds, while the majority has
// elected another primary. Without a group the table is empty.
const writableSQL = `SELECT @@GLOBAL.read_only OR COUNT(*) > 0
	AND 2 * SUM(MEMBER_STATE IN ('ONLINE', 'RECOVERING')) <= COUNT(*)
	FROM performance_schema.replication_group_members`

// checkWritable queries the server's role; nil means that it accepts writes.
func (s *server) checkWritable(ctx context.Context, conn driver.QueryerContext) error {
	asked := time.Now()
	var refusal int64
	var err error
	if !s.noGroupTable.Load() {
		refusal, err = queryNumber(ctx, conn, writableSQL)
		// MariaDB has no groups, and an account may lack the right to read them.
		if isOneOf(err, noSuchTable, noSuchDatabase, selectDenied) {
			s.noGroupTable.Store(true)
		}
	}
	if s.noGroupTable.Load() {
		refusal, err = queryNumber(ctx, conn, "SELECT @@GLOBAL.read_only")
	}
	if err != nil {
		return fmt.Errorf("query the server's role: %w", err)
	}
	if refusal != 0 {
		return errReadOnly
	}
	s.confirmedAt.Store(asked.UnixNano())
	return nil
}

// queryNumber reads one number.
func queryNumber(
	ctx context.Context, conn driver.QueryerContext, query string,
) (int64, error) {
	rows, err := conn.QueryContext(ctx, query, nil)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	values := make([]driver.Value, 1)
	if err := rows.Next(values); err != nil && !errors.Is(err, io.EOF) {
		return 0, err
	}
	// The text protocol returns numbers as text.
	switch v := values[0].(type) {
	case int64:
		return v, nil
	case []byte:
		var n int64
		_, err := fmt.Sscan(string(v), &n)
		return n, err
	default:
		return 0, fmt.Errorf("%q returned %v", query, v)
	}
}
