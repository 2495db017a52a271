package servers_test

import (
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testing/servers"
)

func TestSuite_StartsAServerOnceForAllTests(t *testing.T) {
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

func TestSuite_LeavesNothingWhenClosed(t *testing.T) {
	t.Setenv(servers.EnvExternalSQL, "")
	suite := servers.NewSuite()
	redis, mariadb := suite.Redis(t), suite.MariaDB(t)
	require.NoError(t, suite.Close())
	for _, addr := range []string{redis.Addr(), mariadb.Addr()} {
		_, err := net.DialTimeout("tcp", addr, time.Second)
		require.Error(t, err)
	}
	require.NoError(t, suite.Close(), "closing twice is safe")
}

// TestSuite_FailsTheRunWhereItsServersDo checks that a suite without failures keeps the exit code
// of the tests.
func TestSuite_FailsTheRunWhereItsServersDo(t *testing.T) {
	require.Equal(t, 7, servers.NewSuite().Around(exitCode(7)).Run())
	require.Equal(t, 0, servers.NewSuite().Around(exitCode(0)).Run())
}

type exitCode int

func (c exitCode) Run() int { return int(c) }

func TestRedis_StopsEvenWhilePaused(t *testing.T) {
	server := servers.Redis(t)
	require.NoError(t, server.Pause())
	require.NoError(t, server.Stop())
	require.ErrorIs(t, syscall.Kill(server.Pid(), 0), syscall.ESRCH)
	require.Error(t, server.Pause(), "Pause must fail after Stop")
	require.NoError(t, server.Stop(), "a second Stop must succeed")
}

func TestRedis_ThatCannotStartShowsItsLog(t *testing.T) {
	_, err := servers.StartRedis(t.Context(), t.TempDir(), "no-such-setting 1")
	require.ErrorContains(t, err, "no-such-setting")
}
