package servers_test

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"flashsale.dev/seckill/internal/testing/servers"
)

func TestSuiteStartsAServerOnceForAllTests(t *testing.T) {
	suite := servers.NewSuite()
	t.Cleanup(func() { require.NoError(t, suite.Close()) })
	pids := make(chan int, 8)
	t.Run("tests", func(t *testing.T) {
		for range cap(pids) {
			t.Run("test", func(t *testing.T) {
				t.Parallel()
				pids <- suite.Redis(t).Pid()
			})
		}
	})
	first := <-pids
	for len(pids) > 0 {
		require.Equal(t, first, <-pids)
	}
}

func TestSuiteLeavesNothingWhenClosed(t *testing.T) {
	suite := servers.NewSuite()
	redis, mariadb := suite.Redis(t), suite.MariaDB(t)
	require.NoError(t, suite.Close())
	for _, addr := range []string{redis.Addr(), host(mariadb.DSN(""))} {
		_, err := net.DialTimeout("tcp", addr, time.Second)
		require.Error(t, err)
	}
	require.NoError(t, suite.Close(), "closing twice is safe")
}

func TestSuiteFailsTheRunWhereItsServersDo(t *testing.T) {
	require.Equal(t, 7, servers.NewSuite().Around(exitCode(7)).Run())
	require.Equal(t, 0, servers.NewSuite().Around(exitCode(0)).Run())
}

func TestIgnoreServers(t *testing.T) {
	env.Redis(t)
	goleak.VerifyNone(t, servers.IgnoreServers())
}

type exitCode int

func (c exitCode) Run() int { return int(c) }

// host is the address in a DSN of the form user:password@tcp(address)/.
func host(dsn string) string {
	_, rest, _ := strings.Cut(dsn, "tcp(")
	addr, _, _ := strings.Cut(rest, ")")
	return addr
}
