package servers

import (
	"context"
	"errors"
	"os"
	"slices"
	"sync"
	"testing"
	"time"
)

// Suite shares one server of each kind among the tests of a package: each starts when first asked
// for. A package holds it in a variable of its own and closes it in TestMain:
//
//	var env = servers.NewSuite()
//
//	func TestMain(m *testing.M) { goleak.VerifyTestMain(env.Around(m)) }
//
// Tests keep apart by databases (NewDatabase), vhosts (NewVHost) and keys. A test that kills or
// empties a server starts its own. A Suite is safe for concurrent use.
type Suite struct {
	mu       sync.Mutex
	starts   map[string]func() (handle, error) // each starts its server once
	discards []func() error
}

// NewSuite returns a Suite that has started nothing yet.
func NewSuite() *Suite { return &Suite{starts: make(map[string]func() (handle, error))} }

// Redis is the shared redis-server; where keys or settings clash, use the function of that name
// (0.1 s).
func (s *Suite) Redis(tb testing.TB) *RedisServer {
	tb.Helper()
	return shared(tb, s, "redis", func(ctx context.Context, dir string) (*RedisServer, error) {
		return StartRedis(ctx, dir)
	})
}

// RedisCluster is a shared cluster of three masters without replicas. A test that wants it empty
// calls FlushAll.
func (s *Suite) RedisCluster(tb testing.TB) *RedisNodes {
	tb.Helper()
	return shared(tb, s, "redis-cluster", RedisClusterOptions{}.start)
}

// RabbitMQ is the shared broker.
func (s *Suite) RabbitMQ(tb testing.TB) *RabbitServer {
	tb.Helper()
	return shared(tb, s, "rabbitmq", StartRabbitMQ)
}

// RabbitCluster is a shared cluster of three nodes.
func (s *Suite) RabbitCluster(tb testing.TB) *RabbitNodes {
	tb.Helper()
	return shared(tb, s, "rabbits", startRabbitCluster)
}

// MariaDB is the shared mariadbd, or the external SQL server.
func (s *Suite) MariaDB(tb testing.TB) *SQLServer {
	tb.Helper()
	return shared(tb, s, "mariadb", StartMariaDB)
}

// MySQL is the shared mysqld, or the external SQL server.
func (s *Suite) MySQL(tb testing.TB) *SQLServer {
	tb.Helper()
	return shared(tb, s, "mysql", StartMySQL)
}

// MySQLGroup is the shared group of three. A test that changes it restores it before the next
// (SQLGroup.Heal).
func (s *Suite) MySQLGroup(tb testing.TB) *SQLGroup {
	tb.Helper()
	return shared(tb, s, "mysql-group", StartMySQLGroup)
}

// Close ends all servers that were started and removes their data.
func (s *Suite) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var problems []error
	for _, discard := range slices.Backward(s.discards) {
		problems = append(problems, discard())
	}
	s.discards = nil
	return errors.Join(problems...)
}

// Around returns a test run that closes the suite at its end, before a leak check: the servers'
// owners are goroutines.
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

// shared starts a server once. A start that failed fails every test that asks, without another
// attempt.
func shared[S handle](tb testing.TB, s *Suite, name string, start starter[S]) S {
	tb.Helper()
	// The server outlives the test that happened to ask first.
	ctx := context.WithoutCancel(tb.Context())
	s.mu.Lock()
	if s.starts[name] == nil {
		s.starts[name] = sync.OnceValues(func() (handle, error) {
			return startShared(ctx, s, name, start)
		})
	}
	once := s.starts[name]
	s.mu.Unlock()
	started, err := once()
	check(tb, err)
	server, _ := started.(S)
	tb.Cleanup(func() { showLog(tb, name, server) })
	return server
}

func startShared[S handle](
	ctx context.Context, s *Suite, name string, start starter[S],
) (handle, error) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	server, discard, err := startIn(ctx, name, start)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.discards = append(s.discards, discard)
	return server, nil
}
