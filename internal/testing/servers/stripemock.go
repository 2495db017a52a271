package servers

import (
	"context"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// StripeMockServer is a private stripe-mock: Stripe's own stand-in, which checks requests against
// the specification of Stripe's API and answers fixed examples.
type StripeMockServer struct {
	*Server
	url string
}

// URL returns the address of its API.
func (s *StripeMockServer) URL() string { return s.url }

// StripeMock builds stripe-mock from the module tools and starts it for one test. The first build
// takes some seconds.
func StripeMock(tb testing.TB) *StripeMockServer {
	tb.Helper()
	return forTest(tb, "stripe-mock", func(
		ctx context.Context, dir string,
	) (*StripeMockServer, error) {
		path, err := buildTool(ctx, dir, "github.com/stripe/stripe-mock")
		if err != nil {
			return nil, err
		}
		return launchNew(ctx, "stripe-mock", func() (*StripeMockServer, error) {
			port, err := freePort()
			if err != nil {
				return nil, err
			}
			url := "http://" + loopback(port)
			return &StripeMockServer{url: url, Server: &Server{
				name: "stripe-mock",
				proc: Process{
					Path: path, Dir: dir,
					// Without an address it serves HTTPS on a fixed port, for all interfaces.
					Args: []string{"-http-addr", loopback(port), "-https-addr", loopback(0)},
					File: filepath.Join(dir, "stripe-mock.log"), OnOrphan: syscall.SIGTERM,
				},
				// Any answer shows that it listens: it refuses a call without a key.
				ready: func(ctx context.Context) error { return answers(ctx, url) },
			}}, nil
		})
	})
}

// answers returns an error until a server sends an HTTP response.
func answers(ctx context.Context, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	return res.Body.Close()
}

// buildTool builds a program that the module tools pins, and returns its path in dir.
func buildTool(ctx context.Context, dir, pkg string) (string, error) {
	at, err := moduleRoot(ctx)
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, filepath.Base(pkg))
	return path, goBuild(ctx, at, "-modfile="+filepath.Join(at, "tools", "go.mod"),
		"-o", path, pkg)
}

// moduleRoot returns the directory of this module.
func moduleRoot(ctx context.Context) (string, error) {
	root, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}",
		"flashsale.dev/seckill").Output()
	if err != nil {
		return "", fmt.Errorf("find this module: %w", err)
	}
	return strings.TrimSpace(string(root)), nil
}

// goBuild runs go build in a directory.
func goBuild(ctx context.Context, dir string, args ...string) error {
	build := exec.CommandContext(ctx, "go", append([]string{"build"}, args...)...)
	build.Dir = dir
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("go build %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}
