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

// doomedDir names an environment variable. With it, this test binary starts servers in that
// directory and waits for a kill.
const doomedDir = "TESTENV_DOOMED_DIR"

// beDoomed runs in the copy of this binary that a test kills. It reports when its servers run and
// does not end before its parent.
func beDoomed(dir string) {
	if err := startAll(dir); err != nil {
		fmt.Println("failed:", err)
		os.Exit(1)
	}
	fmt.Println("ready")
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(0)
}

// startAll keeps no handles, so only the kernel can end these servers.
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

// plainNginx writes a minimal configuration: two workers that answer 200.
func plainNginx(dir, addr string) (string, error) {
	conf := filepath.Join(dir, "nginx.conf")
	text := fmt.Sprintf(`worker_processes 2; pid %[1]s/pid; error_log stderr; events {}
http { access_log off; client_body_temp_path %[1]s/b; proxy_temp_path %[1]s/p;
fastcgi_temp_path %[1]s/f; uwsgi_temp_path %[1]s/u; scgi_temp_path %[1]s/s;
server { listen %[2]s; return 200 hello; } }`, dir, addr)
	return conf, os.WriteFile(conf, []byte(text), 0o600)
}
