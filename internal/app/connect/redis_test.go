package connect

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/app"
	"flashsale.dev/seckill/internal/cause"
	"flashsale.dev/seckill/internal/config"
	"flashsale.dev/seckill/internal/rabbit"
	"flashsale.dev/seckill/internal/testing/must"
	"flashsale.dev/seckill/internal/testing/servers"
)

func TestRedisOf_ListMayHaveSpaces(t *testing.T) {
	client := RedisOf(config.Redis{Addrs: []string{"127.0.0.1:1", " 127.0.0.1:2"}})
	defer client.Close()
	require.Equal(t, []string{"127.0.0.1:1", "127.0.0.1:2"},
		client.(*redis.ClusterClient).Options().Addrs)
}

// TestRedisOf_UsesNoConnectionThatTheServerClosed closes the idle connection of a client, whose
// next command is not repeated if it fails.
func TestRedisOf_UsesNoConnectionThatTheServerClosed(t *testing.T) {
	addr := servers.Redis(t).Addr()
	client := RedisOf(config.Redis{Addrs: []string{addr}})
	defer client.Close()
	admin := redis.NewClient(&redis.Options{Addr: addr})
	defer admin.Close()
	require.NoError(t, client.Ping(t.Context()).Err())
	require.NoError(t, admin.ClientKillByFilter(t.Context(), "TYPE", "normal").Err())
	require.Eventually(t, func() bool {
		list, err := admin.ClientList(t.Context()).Result()
		return err == nil && strings.Count(list, "\n") == 1
	}, time.Minute, time.Millisecond)
	require.NoError(t, client.Ping(t.Context()).Err())
}

// TestRedisOf_NamesAServerWithoutAFreeConnection uses up the connections of a server, with and
// without a password.
func TestRedisOf_NamesAServerWithoutAFreeConnection(t *testing.T) {
	addr := servers.Redis(t, "maxclients 1").Addr()
	var taken net.Conn
	require.Eventually(t, func() bool { // the connection of the check at the start may still end
		taken = must.Get(net.Dial("tcp", addr))(t)
		_, err := io.WriteString(taken, "PING\r\n")
		pong := make([]byte, 5)
		_, failed := io.ReadFull(taken, pong)
		return err == nil && failed == nil && string(pong) == "+PONG"
	}, time.Minute, 10*time.Millisecond)
	defer taken.Close()
	for _, password := range []string{"", "secret"} {
		client := RedisOf(config.Redis{Addrs: []string{addr}, Password: config.Secret(password)})
		defer client.Close()
		err := client.Ping(t.Context()).Err()
		require.Equal(t, cause.Crowded, cause.Of(err), "%v", err)
		require.ErrorContains(t, err, addr+": ERR max number of clients reached")
	}
}

func TestRedisOf_UsesTLSAndAPassword(t *testing.T) {
	cert, key := certificate(t, t.TempDir())
	t.Setenv("SSL_CERT_FILE", cert) // before the process reads the system's certificates
	admin := redis.NewClient(&redis.Options{Addr: servers.Redis(t).Addr()})
	defer admin.Close()
	set := func(settings ...any) error {
		return admin.Do(t.Context(), append([]any{"CONFIG", "SET"}, settings...)...).Err()
	}
	require.NoError(t, set("tls-cert-file", cert, "tls-key-file", key, "tls-auth-clients", "no"))
	var port int
	require.Eventually(t, func() bool { // another process may have the port
		port = 12000 + rand.IntN(20000)
		return set("tls-port", port) == nil
	}, time.Minute, time.Millisecond)
	require.NoError(t, set("requirepass", "only we know"))
	good := config.Redis{
		Addrs: []string{fmt.Sprint("127.0.0.1:", port)}, Password: "only we know", TLS: true,
	}
	client := RedisOf(good)
	defer client.Close()
	answers(t, client)

	for name, cfg := range map[string]config.Redis{
		"a wrong password": {Addrs: good.Addrs, Password: "a guess", TLS: true},
		"no password":      {Addrs: good.Addrs, TLS: true},
		"no TLS":           {Addrs: good.Addrs, Password: good.Password},
	} {
		client := RedisOf(cfg)
		require.Error(t, client.Ping(t.Context()).Err(), name)
		require.NoError(t, client.Close())
	}
}

// answers waits until Redis answers. A handshake on a busy machine may exceed the client's
// deadline.
func answers(t *testing.T, client redis.UniversalClient) {
	t.Helper()
	require.Eventually(t, func() bool { return client.Ping(t.Context()).Err() == nil }, time.Minute,
		20*time.Millisecond)
}

// certificate writes the certificate of the standard library's test server, which is for 127.0.0.1
// and signs itself.
func certificate(t *testing.T, dir string) (certFile, keyFile string) {
	t.Helper()
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	own := server.TLS.Certificates[0]
	key := must.Get(x509.MarshalPKCS8PrivateKey(own.PrivateKey))(t)
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for file, block := range map[string]pem.Block{
		certFile: {Type: "CERTIFICATE", Bytes: own.Certificate[0]},
		keyFile:  {Type: "PRIVATE KEY", Bytes: key},
	} {
		require.NoError(t, os.WriteFile(file, pem.EncodeToMemory(&block), 0o600))
	}
	return certFile, keyFile
}

func TestRedisOf_UsesTheSentinelsPassword(t *testing.T) {
	master := servers.Redis(t)
	sentinel := servers.Sentinel(t, master)
	admin := redis.NewClient(&redis.Options{Addr: sentinel.Addr()})
	defer admin.Close()
	require.NoError(t,
		admin.Do(t.Context(), "ACL", "SETUSER", "default", "resetpass", ">only they know").Err())

	knows := config.Redis{Addrs: []string{
		sentinel.Addr(),
	}, SentinelMaster: servers.SentinelMaster, SentinelSecret: "only they know"}
	client := RedisOf(knows)
	defer client.Close()
	answers(t, client)

	guesses := knows
	guesses.SentinelSecret = "a guess"
	stranger := RedisOf(guesses)
	defer stranger.Close()
	require.Error(t, stranger.Ping(t.Context()).Err())
}

// TestProbe_NamesWhatIsWrongWithTLS asks a server whose certificate is for another host, and one
// without TLS. A third one refuses plain AMQP with an alert of TLS, as RabbitMQ does. The test
// comes after the test that sets SSL_CERT_FILE, because a process reads the certificates once.
func TestProbe_NamesWhatIsWrongWithTLS(t *testing.T) {
	encrypted, plain := httptest.NewTLSServer(nil), httptest.NewServer(nil)
	defer encrypted.Close()
	defer plain.Close()
	alerts := must.Get((&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0"))(t)
	defer alerts.Close()
	go func() {
		for conn, err := alerts.Accept(); err == nil; conn, err = alerts.Accept() {
			_, _ = conn.Write([]byte{21, 3, 3, 0, 2, 2, 70, 0})
		}
	}()
	redisLog := func(addr string) string {
		var log strings.Builder
		cfg := config.Redis{Addrs: []string{addr}, TLS: true}
		client := RedisOf(cfg)
		defer client.Close()
		redisServer(cfg, client).probe(t.Context(), slog.New(slog.NewJSONHandler(&log, nil)))
		return log.String()
	}
	amqpLog := func(url string) string {
		var log strings.Builder
		p := must.Get(rabbit.NewPublisher(rabbit.Options{URLs: []string{url}}))(t)
		ctx, stop := context.WithCancel(t.Context())
		running := make(chan error, 1)
		go func() { running <- p.Run(ctx) }()
		(&server{
			setting: "SECKILL_AMQP_URL", host: p.Hosts(),
			ask: func(ctx context.Context) error { return app.AwaitUp(ctx, p) },
		}).probe(ctx, slog.New(slog.NewJSONHandler(&log, nil)))
		stop()
		require.NoError(t, <-running)
		return log.String()
	}
	// On a busy machine a handshake may exceed its deadline.
	logs := func(ask func(string) string, address string, wants ...string) {
		t.Helper()
		var line string
		for range 10 {
			line = ask(address)
			if !slices.ContainsFunc(wants, func(w string) bool {
				return !strings.Contains(line, w)
			}) {
				return
			}
		}
		require.Fail(t, "another warning", "%s\nwants %v", line, wants)
	}
	_, port, _ := net.SplitHostPort(encrypted.Listener.Addr().String())
	untrusted := "localhost:" + port // the certificate is for 127.0.0.1
	invalid := []string{`"host":"` + untrusted, `"cause":"` + cause.Untrusted, "SSL_CERT_FILE"}
	logs(redisLog, untrusted, append(invalid, `"SECKILL_REDIS_ADDRS, SECKILL_REDIS_TLS"`)...)
	logs(amqpLog, "amqps://"+untrusted, append(invalid, `"SECKILL_AMQP_URL"`)...)
	logs(redisLog, plain.Listener.Addr().String(), cause.NoTLS)
	logs(amqpLog, "amqp://"+alerts.Addr().String(), "amqps://")
}
