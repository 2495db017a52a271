package servers

import (
	"context"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"testing"
)

// NginxServer is a private nginx with the configuration that its caller wrote.
type NginxServer struct {
	*Server
	addr string
}

// Addr is where it listens, "127.0.0.1:port".
func (n *NginxServer) Addr() string { return n.addr }

// NginxSetup writes a configuration into dir, for an nginx that is to listen on addr and keep
// everything it writes in dir, and returns the main file's path.
type NginxSetup func(dir, addr string) (conf string, err error)

// Nginx starts an nginx for one test (0.1 s) and stops it at cleanup. ready is a path that it
// answers with 200 by itself.
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
				File: filepath.Join(dir, "nginx.log"), Workers: true,
			},
			ready: func(ctx context.Context) error {
				return callHTTP(ctx, http.MethodGet, "http://"+addr+ready, nil)
			},
		}}, nil
	})
}

// CheckNginx has nginx judge a configuration (nginx -t) and returns what it said.
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
