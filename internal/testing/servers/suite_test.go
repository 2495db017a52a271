package servers_test

import (
	"net"
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
