package servers_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/sync/errgroup"

	"flashsale.dev/seckill/internal/testing/servers"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(doomedDir); dir != "" {
		beDoomed(dir)
	}
	goleak.VerifyTestMain(m)
}

// doomedDir names the environment variable that makes this test binary start servers in that
// directory and wait to be killed.
const doomedDir = "TESTENV_DOOMED_DIR"

// beDoomed is what the doomed copy of this binary does: it says when its servers run, and never
// ends by itself for as long as its parent lives.
func beDoomed(dir string) {
	if err := startAll(dir); err != nil {
		fmt.Println("failed:", err)
		os.Exit(1)
	}
	fmt.Println("ready")
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(0)
}

// startAll keeps no handle: nothing but the kernel will end these servers.
func startAll(dir string) error {
	g, ctx := errgroup.WithContext(context.Background())
	for name, start := range map[string]func(string) error{
		"redis":   func(dir string) error { _, err := servers.StartRedis(ctx, dir); return err },
		"mariadb": func(dir string) error { _, err := servers.StartMariaDB(ctx, dir); return err },
		"rabbit":  func(dir string) error { _, err := servers.StartRabbitMQ(ctx, dir); return err },
		"mysql":   func(dir string) error { _, err := servers.StartMySQL(ctx, dir); return err },
		"nginx": func(dir string) error {
			_, err := servers.StartNginx(ctx, dir, "/", plainNginx)
			return err
		},
	} {
		g.Go(func() error {
			dir := filepath.Join(dir, name)
			return errors.Join(os.Mkdir(dir, 0o700), start(dir))
		})
	}
	return g.Wait()
}
