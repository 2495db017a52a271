package servers

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// NginxServer is a private nginx with the configuration that its caller wrote.
type NginxServer struct {
	*Server
	addr string
}

// Addr is where it listens, "127.0.0.1:port".
func (n *NginxServer) Addr() string { return n.addr }

// NginxSetup writes a configuration into dir, for an nginx that is to listen on addr and keep everything it writes in
// dir, and returns the main file's path.
type NginxSetup func(dir, addr string) (conf string, err error)

// Nginx starts an nginx for one test (0.1 s) and stops it at cleanup. ready is a path that it answers with 200 by itself.
func Nginx(tb testing.TB, ready string, setup NginxSetup) *NginxServer {
	tb.Helper()
	return forTest(tb, "nginx", func(ctx context.Context, dir string) (*NginxServer, error) {
		return StartNginx(ctx, dir, ready, setup)
	})
}

// StartNginx runs an nginx in the foreground and returns when it answers. The caller stops it.
func StartNginx(ctx context.Context, dir, ready string, setup NginxSetup) (*NginxServer, error) {
	path, err := nginxProgram()
	if err != nil {
		return nil, err
	}
	return retryPorts(func() (*NginxServer, error) {
		port, err := freePort()
		if err != nil {
			return nil, err
		}
		server := &NginxServer{addr: loopback(port)}
		conf, err := setup(dir, server.addr)
		if err != nil {
			return nil, fmt.Errorf("set up nginx: %w", err)
		}
		server.Server = newNginx(path, dir, conf, "http://"+server.addr+ready)
		if err := server.first(ctx); err != nil {
			return nil, fmt.Errorf("start nginx: %w", err)
		}
		return server, nil
	})
}

func nginxProgram() (string, error) {
	return program("nginx", "/usr/sbin/nginx", "/usr/local/bin/nginx", "/opt/homebrew/bin/nginx")
}

func newNginx(path, dir, conf, ready string) *Server {
	return &Server{
		name: "nginx",
		proc: process{command: command{
			path: path, args: []string{"-c", conf, "-e", "stderr", "-g", "daemon off;"}, dir: dir, log: filepath.Join(dir, "nginx.log"),
			workers: true,
		}},
		timeout: 60 * time.Second,
		prepare: func(context.Context) error { return nil },
		wipe:    func() error { return nil },
		ready:   func(ctx context.Context) error { return askHTTP(ctx, ready) },
	}
}

// askHTTP says nil where a URL answers with 200.
func askHTTP(ctx context.Context, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return errors.New(url + " answers " + resp.Status)
	}
	return nil
}

// CheckNginx has nginx judge a configuration (nginx -t) and returns what it said.
func CheckNginx(ctx context.Context, dir string, setup NginxSetup) (string, error) {
	path, err := nginxProgram()
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
