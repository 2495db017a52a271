package connect

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/config"
	"flashsale.dev/seckill/internal/testing/must"
	"flashsale.dev/seckill/internal/testing/servers"
)

func TestRedisOf_ListMayHaveSpaces(t *testing.T) {
	client := RedisOf(config.Redis{Addrs: []string{"127.0.0.1:1", " 127.0.0.1:2"}})
	defer client.Close()
	require.Equal(t, []string{"127.0.0.1:1", "127.0.0.1:2"},
		client.(*redis.ClusterClient).Options().Addrs)
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
