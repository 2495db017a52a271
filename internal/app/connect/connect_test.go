package connect

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/app"
	"flashsale.dev/seckill/internal/cause"
	"flashsale.dev/seckill/internal/config"
	"flashsale.dev/seckill/internal/redisstore"
	"flashsale.dev/seckill/internal/testing/must"
	"flashsale.dev/seckill/internal/testing/servers"
	"flashsale.dev/seckill/internal/testing/testlog"
)

// TestProbe_NamesSettingAndHostOfEachServer starts with addresses where nothing listens.
func TestProbe_NamesSettingAndHostOfEachServer(t *testing.T) {
	closed := must.Get((&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0"))(t)
	addr := closed.Addr().String()
	require.NoError(t, closed.Close())
	cfg, _, err := config.Load(config.API, []string{
		"SECKILL_JWT_SECRET=" + strings.Repeat("s", 32), "SECKILL_REDIS_ADDRS=" + addr,
		"SECKILL_MYSQL_DSN=a:b@tcp(" + addr + ")/c", "SECKILL_AMQP_URL=amqp://" + addr,
		"SECKILL_MYSQL_READ_DSN=a:b@tcp(" + addr + ")/c",
	})
	require.NoError(t, err)
	var log strings.Builder
	up := must.Get(Open(t.Context(), cfg, nil, nil, slog.New(slog.NewJSONHandler(&log, nil))))(t)
	defer up.Close()
	for _, s := range []*server{
		up.redis, up.mysqlServer(), up.replicaServer(), up.rabbitServer(),
	} {
		s.probe(t.Context(), up.Log)
	}
	var settings []string
	for line := range strings.Lines(log.String()) {
		var warning struct{ Level, Setting, Err string }
		require.NoError(t, json.Unmarshal([]byte(line), &warning), line)
		require.Equal(t, "WARN", warning.Level)
		if warning.Setting != "SECKILL_AMQP_URL" { // its publisher does not run here
			require.Contains(t, warning.Err, addr)
		}
		settings = append(settings, warning.Setting)
	}
	require.Equal(t, []string{
		"SECKILL_REDIS_ADDRS, SECKILL_REDIS_TLS", "SECKILL_MYSQL_DSN", "SECKILL_MYSQL_READ_DSN",
		"SECKILL_AMQP_URL",
	}, settings)
}

// TestProbe_EmptyDatabaseIsNotMigrated checks that the warning names the host and the command.
func TestProbe_EmptyDatabaseIsNotMigrated(t *testing.T) {
	cfg, _, err := config.Load(config.Consumer, []string{
		"SECKILL_JWT_SECRET=" + strings.Repeat("s", 32),
		"SECKILL_MYSQL_DSN=sqlite:" + filepath.Join(t.TempDir(), "empty.db"),
	})
	require.NoError(t, err)
	var log strings.Builder
	up := must.Get(Open(t.Context(), cfg, nil, nil, slog.New(slog.NewJSONHandler(&log, nil))))(t)
	defer up.Close()
	database := up.mysqlServer()
	database.probe(t.Context(), up.Log)
	require.Contains(t, log.String(), "the database is not migrated")
	require.Regexp(t,
		`empty\.db has migration 0 and this program needs \d+: run seckillctl migrate`,
		log.String())
	log.Reset()
	require.NoError(t, up.Store.Migrate(t.Context()))
	database.probe(t.Context(), up.Log)
	require.Contains(t, log.String(), "usable again")
	log.Reset()
	up.mysqlServer().probe(t.Context(), up.Log)
	require.Empty(t, log.String())
}

// TestProbe_WrongPasswordNamesItsSetting checks that the warning names the password, not the
// address.
func TestProbe_WrongPasswordNamesItsSetting(t *testing.T) {
	addr := servers.Redis(t).Addr()
	admin := redis.NewClient(&redis.Options{Addr: addr})
	defer admin.Close()
	require.NoError(t, admin.ConfigSet(t.Context(), "requirepass", "only we know").Err())
	for _, password := range []string{"", "a guess"} {
		cfg := config.Redis{Addrs: []string{addr}, Password: config.Secret(password)}
		client := RedisOf(cfg)
		var log strings.Builder
		redisServer(cfg, client).probe(t.Context(), slog.New(slog.NewJSONHandler(&log, nil)))
		require.NoError(t, client.Close())
		var warning struct{ Msg, Setting, Host string }
		require.NoError(t, json.Unmarshal([]byte(log.String()), &warning), log.String())
		require.Contains(t, warning.Msg, "refuses the user or the password")
		require.Equal(t, "SECKILL_REDIS_USERNAME, SECKILL_REDIS_PASSWORD", warning.Setting)
		require.Equal(t, addr, warning.Host)
	}
}

// TestProbeRedis_LogsAnOutageAndItsEnd checks that a server that hangs is one warning, and its
// return one line, although the worker asks each second.
func TestProbeRedis_LogsAnOutageAndItsEnd(t *testing.T) {
	single := servers.Redis(t)
	cluster := servers.RedisCluster(t, servers.RedisClusterOptions{})
	for _, c := range []struct {
		addrs []string
		node  interface{ Pause() error }
		back  func() error
		addr  string
	}{
		{[]string{single.Addr()}, single, single.Resume, single.Addr()},
		{cluster.Addrs(), cluster.Nodes[1], cluster.Nodes[1].Resume, cluster.Nodes[1].Addr()},
	} {
		cfg, log := config.Redis{Addrs: c.addrs}, testlog.New()
		client := RedisOf(cfg)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			ended <- ProbeRedis(cfg, client, slog.New(slog.NewTextHandler(log, nil))).Run(ctx)
		}()
		answers(t, client)
		require.NoError(t, c.node.Pause())
		outage := log.Next(t)
		require.Contains(t, outage, "level=WARN")
		require.Contains(t, outage, `setting="SECKILL_REDIS_ADDRS, SECKILL_REDIS_TLS"`)
		require.Regexp(t, "err=.*"+c.addr, outage)
		require.NoError(t, c.back())
		end := log.Next(t)
		for strings.Contains(end, "level=WARN") { // the cause has changed meanwhile
			end = log.Next(t)
		}
		require.Contains(t, end, "level=INFO")
		require.Contains(t, end, strings.Join(c.addrs, ","))
		stop()
		require.NoError(t, <-ended)
		require.NoError(t, client.Close())
		require.Empty(t, log)
	}
}

// TestCheck_ReportsBadAddressesWithOtherProblems checks that one start names all problems.
func TestCheck_ReportsBadAddressesWithOtherProblems(t *testing.T) {
	_, _, err := app.Start(config.API, "api", nil, nil, []string{
		"SECKILL_JWT_SECRET=tooshort", "SECKILL_AMQP_URL=amqp://user:hush@mq/,http://mq:5672",
		"SECKILL_MYSQL_DSN=mysql://user:hush@host/db", "SECKILL_MYSQL_READ_DSN=u:hush@tcp(host:1)/",
	}, io.Discard, io.Discard, Check)
	for _, setting := range []string{"JWT_SECRET", "AMQP_URL", "MYSQL_DSN", "MYSQL_READ_DSN"} {
		require.ErrorContains(t, err, "\nSECKILL_"+setting+": ")
	}
	require.NotContains(t, err.Error(), "hush")
	_, _, err = app.Start(config.Consumer, "order-consumer", nil, nil,
		[]string{"SECKILL_JWT_SECRET=" + strings.Repeat("s", 32)}, io.Discard, io.Discard, Check)
	require.NoError(t, err)
}

// TestProbe_UnknownSentinelMasterNamesItsSetting checks that the warning and the cause in /readyz
// name the master's setting: the sentinels answer, with nil.
func TestProbe_UnknownSentinelMasterNamesItsSetting(t *testing.T) {
	cfg := config.Redis{
		Addrs: []string{servers.Sentinel(t, servers.Redis(t)).Addr()}, SentinelMaster: "mymaster",
	}
	client := RedisOf(cfg)
	defer client.Close()
	var log strings.Builder
	redisServer(cfg, client).probe(t.Context(), slog.New(slog.NewJSONHandler(&log, nil)))
	require.Contains(t, log.String(),
		`"setting":"SECKILL_REDIS_ADDRS, SECKILL_REDIS_TLS, SECKILL_REDIS_SENTINEL_MASTER"`)
	_, err := redisstore.New(client, redisstore.Options{}).CheckReadiness(t.Context())
	const known = "the sentinels know no such master: correct SECKILL_REDIS_SENTINEL_MASTER"
	require.Equal(t, known, cause.Of(err))
	require.Contains(t, log.String(), known)
}

// TestCheck_ShowsNoPartOfAPassword uses passwords that end where a URL's host begins.
func TestCheck_ShowsNoPartOfAPassword(t *testing.T) {
	check := func(url string) error {
		return Check(config.Config{AMQP: config.AMQP{URLs: config.Secret(url)}})
	}
	for _, password := range []string{
		"hush/x", "hush?x", "hush#x", "hush%x", "hush,x", "123/hush", "/hush", "#hush",
		"x@hush/x", "x@hush#x", "x@hush/@x",
	} {
		err := check("amqp://user:" + password + "@host:5672/")
		require.ErrorContains(t, err, "SECKILL_AMQP_URL: ", password)
		require.ErrorContains(t, err, "%2F for /", password)
		require.NotContains(t, err.Error(), "hus")
	}
	require.NoError(t, check("amqp://user:%2F%3F%23%25%2C%40:@[::1]:5672/v@h"))
}

func TestOpen_NamesTheSettingOfABadAddress(t *testing.T) {
	for setting, value := range map[string]string{
		"SECKILL_AMQP_URL": "http://mq:5672", "SECKILL_MYSQL_DSN": "mysql://user:hush@host/db",
	} {
		cfg, _, err := config.Load(config.Consumer, []string{
			"SECKILL_JWT_SECRET=" + strings.Repeat("s", 32), setting + "=" + value,
		})
		require.NoError(t, err)
		_, err = Open(t.Context(), cfg, nil, nil, slog.New(slog.DiscardHandler))
		require.ErrorContains(t, err, setting)
		require.NotContains(t, err.Error(), "hush")
	}
}

// TestRedisOf_ErrorsNameAServerThatHangs checks the errors of a server that accepts connections and
// answers nothing, as a suspended one does: the log has to name it.
func TestRedisOf_ErrorsNameAServerThatHangs(t *testing.T) {
	hangs := must.Get((&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0"))(t)
	defer hangs.Close()
	addr := hangs.Addr().String()
	for _, cfg := range []config.Redis{
		{Addrs: []string{addr}},
		{Addrs: []string{addr, addr}}, // a cluster
		{Addrs: []string{addr}, SentinelMaster: "m"},
	} {
		client := RedisOf(cfg)
		defer client.Close()
		err := client.Get(t.Context(), "a key").Err()
		require.ErrorContains(t, err, addr)
		require.Equal(t, cause.Silent, cause.Of(err), err)
		pipe := client.Pipeline()
		got := pipe.Get(t.Context(), "a key")
		_, err = pipe.Exec(t.Context())
		require.ErrorContains(t, err, addr)
		require.ErrorContains(t, got.Err(), addr)
	}
}
