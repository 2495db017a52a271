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

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/config"
)

func TestRedisOf_UsesTLSAndAPassword(t *testing.T) {
	dir, addr := t.TempDir(), freeAddr(t)
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

func freeAddr(t *testing.T) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().String()
}

// certificate writes the certificate of the standard library's test server, which is for 127.0.0.1
// and signs itself.
func certificate(t *testing.T, dir string) (certFile, keyFile string) {
	t.Helper()
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	own := server.TLS.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(own.PrivateKey)
	require.NoError(t, err)
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for file, block := range map[string]pem.Block{
		certFile: {Type: "CERTIFICATE", Bytes: own.Certificate[0]},
		keyFile:  {Type: "PRIVATE KEY", Bytes: key},
	} {
		require.NoError(t, os.WriteFile(file, pem.EncodeToMemory(&block), 0o600))
	}
	return certFile, keyFile
}
