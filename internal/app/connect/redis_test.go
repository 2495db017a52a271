package connect

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
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

// certificate writes a self-signed certificate for 127.0.0.1.
func certificate(t *testing.T, dir string) (certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	secret, err := x509.MarshalECPrivateKey(key)
	require.NoError(t, err)
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	require.NoError(t, os.WriteFile(certFile,
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}), 0o600))
	require.NoError(t, os.WriteFile(keyFile,
		pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: secret}), 0o600))
	return certFile, keyFile
}
