package servers

import (
	"context"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// NginxServer is a private nginx with its caller's configuration.
type NginxServer struct {
	*Server
	addr string
}

// Addr returns the listen address, "127.0.0.1:port".
func (n *NginxServer) Addr() string { return n.addr }

// NginxSetup writes a configuration into dir and returns the main file's path. nginx must listen on
// addr and write all files in dir.
type NginxSetup func(dir, addr string) (conf string, err error)

// Nginx starts an nginx for one test (0.1 s) and stops it at cleanup. ready is a path for which
// nginx itself answers 200.
func Nginx(tb testing.TB, ready string, setup NginxSetup) *NginxServer {
	tb.Helper()
	return forTest(tb, "nginx", func(ctx context.Context, dir string) (*NginxServer, error) {
		return StartNginx(ctx, dir, ready, setup)
	})
}

// StartNginx runs an nginx in the foreground and returns when it answers. The caller stops it.
func StartNginx(ctx context.Context, dir, ready string, setup NginxSetup) (*NginxServer, error) {
	return withProgram(ctx, "nginx", func(path string) (*NginxServer, error) {
		port, err := freePort()
		if err != nil {
			return nil, err
		}
		addr := loopback(port)
		conf, err := setup(dir, addr)
		if err != nil {
			return nil, fmt.Errorf("set up nginx: %w", err)
		}
		return &NginxServer{addr: addr, Server: &Server{
			name: "nginx",
			proc: Process{
				Path: path, Args: []string{"-c", conf, "-e", "stderr", "-g", "daemon off;"},
				Dir:  dir,
				File: filepath.Join(dir, "nginx.log"), OnOrphan: syscall.SIGTERM,
			},
			ready: func(ctx context.Context) error {
				return callHTTP(ctx, http.MethodGet, "http://"+addr+ready, nil)
			},
		}}, nil
	})
}

// CheckNginx validates a configuration with nginx -t and returns its output.
func CheckNginx(ctx context.Context, dir string, setup NginxSetup) (string, error) {
	path, err := program("nginx")
	if err != nil {
		return "", err
	}
	conf, err := setup(dir, loopback(firstPort))
	if err != nil {
		return "", fmt.Errorf("set up nginx: %w", err)
	}
	said, err := exec.CommandContext(ctx, path, "-t", "-c", conf, "-e", "stderr").CombinedOutput()
	return string(said), err
}
