package connect

import (
	"crypto/x509"
	"encoding/pem"
	"net"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/config"
	"flashsale.dev/seckill/internal/testing/must"
	"flashsale.dev/seckill/internal/testing/servers"
)

func TestRedisOf_UsesTLSAndAPassword(t *testing.T) {
	dir, free := t.TempDir(), httptest.NewServer(nil)
	free.Close()
	addr := free.Listener.Addr().String()
	cert, key := certificate(t, dir)
	t.Setenv("SSL_CERT_FILE", cert) // before the process reads the system's certificates
	_, port, err := net.SplitHostPort(addr)
	require.NoError(t, err)
	server := exec.CommandContext(t.Context(), "/usr/bin/redis-server", "--port", "0", "--tls-port",
		port, "--bind", "127.0.0.1", "--dir", dir, "--tls-cert-file", cert, "--tls-key-file", key,
		"--tls-auth-clients", "no", "--requirepass", "only we know", "--save", "")
	require.NoError(t, server.Start())
	t.Cleanup(func() {
		_ = server.Process.Kill()
		_ = server.Wait()
	})
	good := config.Redis{Addrs: []string{addr}, Password: "only we know", TLS: true}
	client := RedisOf(good)
	defer client.Close()
	require.Eventually(t, func() bool { return client.Ping(t.Context()).Err() == nil }, time.Minute,
		20*time.Millisecond)

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
	require.Eventually(t, func() bool { return client.Ping(t.Context()).Err() == nil }, time.Minute,
		20*time.Millisecond)

	guesses := knows
	guesses.SentinelSecret = "a guess"
	stranger := RedisOf(guesses)
	defer stranger.Close()
	require.Error(t, stranger.Ping(t.Context()).Err())
}
