package servers_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testing/servers"
)

// say sends one inline command and returns the last line of a status or bulk answer.
func say(addr, command string, patience time.Duration) (string, error) {
	conn, err := net.DialTimeout("tcp", addr, patience)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(patience))
	if _, err := fmt.Fprintf(conn, "%s\r\n", command); err != nil {
		return "", err
	}
	answer := bufio.NewReader(conn)
	line, err := answer.ReadString('\n')
	if err == nil && strings.HasPrefix(line, "$") && line != "$-1\r\n" {
		line, err = answer.ReadString('\n')
	}
	return strings.TrimSpace(line), err
}

func mustSay(t *testing.T, addr, command string) string {
	t.Helper()
	answer, err := say(addr, command, 5*time.Second)
	require.NoError(t, err)
	return answer
}

func TestRedisKeepsItsDataThroughAKill(t *testing.T) {
	redis := servers.Redis(t)
	require.Equal(t, "+OK", mustSay(t, redis.Addr(), "SET goods 7"))
	require.NoError(t, redis.Kill())
	_, err := say(redis.Addr(), "PING", time.Second)
	require.Error(t, err, "a killed server must not answer")
	require.NoError(t, redis.Restart(t.Context()))
	require.Equal(t, "7", mustSay(t, redis.Addr(), "GET goods"))
}

func TestRedisRestartsInGoodOrderToo(t *testing.T) {
	redis := servers.Redis(t)
	mustSay(t, redis.Addr(), "SET goods 7")
	before := redis.Pid()
	require.NoError(t, redis.Restart(t.Context()))
	require.NotEqual(t, before, redis.Pid())
	require.Equal(t, "7", mustSay(t, redis.Addr(), "GET goods"))
}

func TestRedisRestartEmptyLosesItsData(t *testing.T) {
	redis := servers.Redis(t)
	mustSay(t, redis.Addr(), "SET goods 7")
	require.NoError(t, redis.RestartEmpty(t.Context()))
	require.Equal(t, "$-1", mustSay(t, redis.Addr(), "GET goods"))
}

func TestRedisPausedSaysNothingUntilResumed(t *testing.T) {
	redis := servers.Redis(t)
	require.NoError(t, redis.Pause())
	_, err := say(redis.Addr(), "PING", 200*time.Millisecond)
	require.Error(t, err)
	require.NoError(t, redis.Resume())
	require.Equal(t, "+PONG", mustSay(t, redis.Addr(), "PING"))
}

func TestRedisStopsEvenWhilePaused(t *testing.T) {
	redis := servers.Redis(t)
	require.NoError(t, redis.Pause())
	require.NoError(t, redis.Stop())
	require.ErrorIs(t, syscall.Kill(redis.Pid(), 0), syscall.ESRCH)
	require.Error(t, redis.Pause(), "there is nothing left to pause")
	require.NoError(t, redis.Stop(), "stopping twice is safe")
}

func TestRedisIsSetUpAsTheSaleNeedsIt(t *testing.T) {
	redis := servers.Redis(t, servers.WithRedisConf("appendfsync always"))
	config := redisConfig(t, redis.Addr())
	require.Contains(t, config, "appendfsync always")
	require.Contains(t, config, "appendonly yes")
	require.Contains(t, config, "maxmemory-policy noeviction")
}

// redisConfig is the server's settings, one "name value" after another.
func redisConfig(t *testing.T, addr string) string {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	_, err = fmt.Fprint(conn, "CONFIG GET *\r\nQUIT\r\n")
	require.NoError(t, err)
	answer, err := io.ReadAll(conn)
	require.NoError(t, err)
	lengths := regexp.MustCompile(`(?m)^[$*]\d+\r\n`)
	return strings.ReplaceAll(lengths.ReplaceAllString(string(answer), ""), "\r\n", " ")
}

func TestRedisThatCannotStartShowsItsLog(t *testing.T) {
	_, err := servers.StartRedis(t.Context(), t.TempDir(), servers.WithRedisConf("no-such-setting 1"))
	require.ErrorContains(t, err, "no-such-setting")
}

func TestManyRedisServersSideBySide(t *testing.T) {
	addrs := map[string]bool{}
	for range 5 {
		addrs[servers.Redis(t).Addr()] = true
	}
	require.Len(t, addrs, 5)
}
