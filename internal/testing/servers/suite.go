package servers

import (
	"context"
	"errors"
	"flag"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Suite shares one server of each kind among the tests of a package. Each server starts at its
// first use. A package holds the suite in a variable and closes it in TestMain:
//
//	var env = servers.NewSuite()
//
//	func TestMain(m *testing.M) { goleak.VerifyTestMain(env.Around(m)) }
//
// Tests are separated by databases (NewDatabase), vhosts (NewVHost) and keys. A test that kills or
// empties a server starts its own. A Suite is safe for concurrent use.
type Suite struct {
	mu       sync.Mutex
	starts   map[string]func() (handle, error) // each starts its server at most one time
	discards []func() error
}

// NewSuite returns a Suite without running servers.
func NewSuite() *Suite { return &Suite{starts: make(map[string]func() (handle, error))} }

// Redis returns the shared redis-server. If keys or settings conflict, a test uses the function
// Redis instead (0.1 s).
func (s *Suite) Redis(tb testing.TB) *RedisServer {
	tb.Helper()
	return shared(tb, s, "redis", func(ctx context.Context, dir string) (*RedisServer, error) {
		return StartRedis(ctx, dir)
	})
}

// RedisCluster returns a shared cluster of three masters without replicas. A test that needs an
// empty cluster calls FlushAll.
func (s *Suite) RedisCluster(tb testing.TB) *RedisNodes {
	tb.Helper()
	return shared(tb, s, "redis-cluster", RedisClusterOptions{}.start)
}

// RabbitMQ returns the shared broker.
func (s *Suite) RabbitMQ(tb testing.TB) *RabbitServer {
	tb.Helper()
	return shared(tb, s, "rabbitmq", StartRabbitMQ)
}

// RabbitCluster returns a shared cluster of three nodes.
func (s *Suite) RabbitCluster(tb testing.TB) *RabbitNodes {
	tb.Helper()
	return shared(tb, s, "rabbits", startRabbitCluster)
}

// MariaDB returns the shared mariadbd, or the external SQL server.
func (s *Suite) MariaDB(tb testing.TB) *SQLServer {
	tb.Helper()
	return shared(tb, s, "mariadb", StartMariaDB)
}

// SQL returns the shared SQL server: MariaDB, or MySQL if EnvFetched names it.
func (s *Suite) SQL(tb testing.TB) *SQLServer {
	tb.Helper()
	if isFetched("mysql") {
		return s.MySQL(tb)
	}
	return s.MariaDB(tb)
}

// MySQL returns the shared mysqld, or the external SQL server.
func (s *Suite) MySQL(tb testing.TB) *SQLServer {
	tb.Helper()
	return shared(tb, s, "mysql", StartMySQL)
}

// MySQLGroup returns the shared group of three members. A test that changes it restores it with
// SQLGroup.Heal.
func (s *Suite) MySQLGroup(tb testing.TB) *SQLGroup {
	tb.Helper()
	return shared(tb, s, "mysql-group", StartMySQLGroup)
}

// Close stops all started servers and deletes their data.
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

// Around returns a test run that closes the suite before a leak check, because goroutines own the
// servers.
func (s *Suite) Around(m interface{ Run() int }) SuiteRun {
	return func() int {
		// rapid prints the seed of a failed property, so it needs no file in the source tree.
		if flag.Lookup("rapid.nofailfile") != nil {
			_ = flag.Set("rapid.nofailfile", "true") // it is a bool
		}
		code := m.Run()
		if err := s.Close(); err != nil {
			_, _ = os.Stderr.WriteString("servers: " + err.Error() + "\n")
			return max(code, 1)
		}
		return code
	}
}

// SuiteRun is a *testing.M that closes a Suite after its tests.
type SuiteRun func() int

// Run runs the tests, closes the suite and returns the exit code. The code is 1 if only the close
// failed.
func (r SuiteRun) Run() int { return r() }

// shared starts a server one time. After a failed start every test that uses the server fails
// without a second attempt.
func shared[S handle](tb testing.TB, s *Suite, name string, start starter[S]) S {
	tb.Helper()
	// The server outlives the first test that uses it.
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
	require.NoError(tb, err)
	server, _ := started.(S)
	tb.Cleanup(func() {
		if tb.Failed() {
			tb.Logf("the end of %s's log:\n%s", name, server.Log())
		}
	})
	return server
}

// startShared starts a server in a temporary directory. The path of a Unix socket must be short, so
// the directory is not that of tb.TempDir, which contains the test's name.
func startShared[S handle](
	ctx context.Context, s *Suite, name string, start starter[S],
) (handle, error) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	dir, err := os.MkdirTemp("", "seckill-"+name+"-")
	if err != nil {
		return nil, err
	}
	server, err := start(ctx, dir)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.discards = append(s.discards, func() error {
		return errors.Join(server.discard(), os.RemoveAll(dir))
	})
	return server, nil
}
