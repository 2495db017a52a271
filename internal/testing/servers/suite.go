package servers

import (
	"context"
	"errors"
	"os"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// Suite shares one server of each kind among the tests of a package: each starts when first asked for. A
// package holds it in a variable of its own and closes it in TestMain:
//
//	var env = servers.NewSuite()
//
//	func TestMain(m *testing.M) { goleak.VerifyTestMain(env.Around(m)) }
//
// Tests keep apart by databases (NewDatabase), vhosts (NewVHost) and keys. A test that kills or empties a server starts its own.
// A Suite is safe for concurrent use.
type Suite struct {
	redis    shared[*RedisServer]
	cluster  shared[*RedisNodes]
	rabbit   shared[*RabbitServer]
	rabbits  shared[*RabbitNodes]
	mariadb  shared[*SQLServer]
	mysql    shared[*SQLServer]
	group    shared[*SQLGroup]
	closures closers
}

// NewSuite returns a Suite that has started nothing yet.
func NewSuite() *Suite { return &Suite{} }

// Redis is the shared redis-server; where keys or settings clash, use the function of that name (0.1 s).
func (s *Suite) Redis(tb testing.TB) *RedisServer {
	tb.Helper()
	return s.redis.get(tb, "redis", &s.closures, func(ctx context.Context, dir string) (*RedisServer, error) {
		return StartRedis(ctx, dir)
	})
}

// RedisCluster is a shared cluster of three masters without replicas. A test that wants it empty calls FlushAll.
func (s *Suite) RedisCluster(tb testing.TB) *RedisNodes {
	tb.Helper()
	return s.cluster.get(tb, "redis-cluster", &s.closures, func(ctx context.Context, dir string) (*RedisNodes, error) {
		return StartRedisCluster(ctx, dir, 3, 0)
	})
}

// RabbitMQ is the shared broker.
func (s *Suite) RabbitMQ(tb testing.TB) *RabbitServer {
	tb.Helper()
	return s.rabbit.get(tb, "rabbitmq", &s.closures, StartRabbitMQ)
}

// RabbitCluster is a shared cluster of three nodes.
func (s *Suite) RabbitCluster(tb testing.TB) *RabbitNodes {
	tb.Helper()
	return s.rabbits.get(tb, "rabbits", &s.closures, func(ctx context.Context, dir string) (*RabbitNodes, error) {
		return StartRabbitCluster(ctx, dir, 3)
	})
}

// MariaDB is the shared mariadbd, or the external SQL server.
func (s *Suite) MariaDB(tb testing.TB) *SQLServer {
	tb.Helper()
	return s.mariadb.get(tb, "mariadb", &s.closures, StartMariaDB)
}

// MySQL is the shared mysqld, or the external SQL server.
func (s *Suite) MySQL(tb testing.TB) *SQLServer {
	tb.Helper()
	return s.mysql.get(tb, "mysql", &s.closures, StartMySQL)
}

// MySQLGroup is the shared group of three. A test that fault it heals it before the next one comes (SQLGroup.Heal).
func (s *Suite) MySQLGroup(tb testing.TB) *SQLGroup {
	tb.Helper()
	return s.group.get(tb, "mysql-group", &s.closures, func(ctx context.Context, dir string) (*SQLGroup, error) {
		return StartMySQLGroup(ctx, dir, 3)
	})
}

// Close ends all servers that were started and removes their data.
func (s *Suite) Close() error { return s.closures.close() }

// Around returns a test run that closes the suite at its end, before a leak check: the servers' owners are goroutines.
func (s *Suite) Around(m interface{ Run() int }) SuiteRun { return SuiteRun{suite: s, tests: m} }

// SuiteRun is a *testing.M with a Suite around it.
type SuiteRun struct {
	suite *Suite
	tests interface{ Run() int }
}

// Run runs the tests, closes the suite and returns the exit code: 1 where only the closing failed.
func (r SuiteRun) Run() int {
	code := r.tests.Run()
	if err := r.suite.Close(); err != nil {
		_, _ = os.Stderr.WriteString("servers: " + err.Error() + "\n")
		return max(code, 1)
	}
	return code
}

// IgnoreServers keeps a leak check inside a test from taking running servers for leaks.
func IgnoreServers() goleak.Option {
	return goleak.IgnoreAnyFunction("flashsale.dev/seckill/internal/testing/servers.own")
}

// shared starts a server once. A start that failed fails every test that asks, without another attempt.
type shared[S handle] struct {
	once   sync.Once
	server S
	err    error
}

func (s *shared[S]) get(tb testing.TB, name string, closures *closers, start func(context.Context, string) (S, error)) S {
	tb.Helper()
	s.once.Do(func() {
		s.err = errors.New("its start was broken off")
		// The server outlives the test that happened to ask first.
		s.server, s.err = startShared(context.WithoutCancel(tb.Context()), name, closures, start)
	})
	if s.err != nil {
		tb.Fatalf("servers: %v", s.err)
	}
	tb.Cleanup(func() { showLog(tb, name, s.server) })
	return s.server
}

func startShared[S handle](ctx context.Context, name string, closures *closers, start func(context.Context, string) (S, error)) (S, error) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	var none S
	dir, err := os.MkdirTemp("", "seckill-"+name+"-")
	if err != nil {
		return none, err
	}
	closures.add(func() error { return os.RemoveAll(dir) })
	server, err := start(ctx, dir)
	if err != nil {
		return none, err
	}
	closures.add(server.discard)
	return server, nil
}

// closers are run in reverse order, once.
type closers struct {
	mu    sync.Mutex
	steps []func() error
}

func (c *closers) add(step func() error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.steps = append(c.steps, step)
}

func (c *closers) close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var problems []error
	for i := len(c.steps) - 1; i >= 0; i-- {
		problems = append(problems, c.steps[i]())
	}
	c.steps = nil
	return errors.Join(problems...)
}
