package edge

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testing/must"
	"flashsale.dev/seckill/internal/testing/servers"
)

const deployed = "../../deploy/nginx"

// site has the files of site/ that a test replaces, by name without ending. The other files stay as
// they are deployed.
type site map[string]string

// These files let every request through. A test replaces the one that it concerns.
const (
	noShared = `return {
		redis = { host = "127.0.0.1", port = 1, timeout_ms = 50, pool = 8, idle_ms = 1000, rest = 0.1 },
		on_redis_error = "open", known = { SOLD_OUT = 0.5, NOT_STARTED = 1, ENDED = 1 },
		shared = {} }`
	// Every process on this machine may set its client address. The tests can thus send from many
	// addresses.
	believesTests = "set_real_ip_from 127.0.0.1;\nreal_ip_header X-Forwarded-For;\n"
	noLimits      = `set $edge_policy '"edge";q=1;w=1';`
)

func upstream(addr string) string {
	return fmt.Sprintf("upstream api { server %s max_fails=0; keepalive 16; }\n", addr)
}

func open(api string) site {
	return site{
		"upstream.conf": upstream(api), "trusted.conf": believesTests, "settings.lua": noShared,
		"limits_path.conf": noLimits, "limits_buy.conf": noLimits, "limits_other.conf": noLimits,
		"limits_place.conf": noLimits,
	}
}

func (s site) with(file, text string) site {
	s[file] = text
	return s
}

// setup writes the deployed files into a directory, for an nginx of the test's own.
func (s site) setup(dir, addr string) (string, error) {
	into, run := filepath.Join(dir, "conf"), filepath.Join(dir, "run")
	if err := os.MkdirAll(run, 0o755); err != nil {
		return "", err
	}
	workers := "worker_processes 2"
	if os.Geteuid() == 0 { // the workers of root's nginx could not enter the test's directory
		workers = "user root;\n" + workers
	}
	own := func(text string) string {
		return strings.NewReplacer("/etc/seckill/nginx", into, "/tmp/edge", run,
			"worker_processes auto", workers).Replace(text)
	}
	files := site{"listen.conf": "listen " + addr + ";\nserver_name edge;\n" + s["listen_more"]}
	maps.Copy(files, s)
	err := filepath.WalkDir(deployed, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if replaced, ok := files[d.Name()]; ok && filepath.Base(filepath.Dir(path)) == "site" {
			text = []byte(replaced)
		}
		to := filepath.Join(into, strings.TrimPrefix(path, deployed))
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		return os.WriteFile(to, []byte(own(string(text))), 0o600)
	})
	return filepath.Join(into, "nginx.conf"), err
}

// start runs an nginx with these files.
func start(t *testing.T, s site) *edge {
	nginx := servers.Nginx(t, "/edge/alive", s.setup)
	return &edge{t: t, nginx: nginx, base: "http://" + nginx.Addr()}
}

// TestSettings_DeployedAreWellFormed checks that nginx accepts the deployed files without a
// warning.
func TestSettings_DeployedAreWellFormed(t *testing.T) {
	// Names of the compose network cannot be resolved here. All other files are as deployed.
	s := site{"upstream.conf": upstream("127.0.0.1:8080")}
	said, err := servers.CheckNginx(t.Context(), t.TempDir(), s.setup)
	require.NoError(t, err, said)
	require.Contains(t, said, "test is successful")
	require.NotContains(t, said, "[warn]")
	text := must.Get(os.ReadFile(deployed + "/site/settings.lua"))(t)
	require.Contains(t, string(text),
		`{ rule = "edgePerAddress", by = "address", window = { 10, 10 } }`,
		"TestSharedLimit_TenInAWindowOverAllEdges uses a longer window")
}

// TestSettings_WrongLimitKeepsNginxFromStarting checks that nginx reports an invalid shared limit
// at its start.
func TestSettings_WrongLimitKeepsNginxFromStarting(t *testing.T) {
	for _, rule := range []string{
		`{ rule = "x", by = "goods" },`, `{ rule = "x", by = "colour", window = { 10, 10 } },`,
		`{ rule = "x", by = "goods", bucket = { 1e15, 10 } },`,
		`{ rule = "x", by = "goods", bucket = { 0, 10 } },`,
	} {
		s := site{
			"upstream.conf": upstream("127.0.0.1:8080"),
			"settings.lua":  asking(t, "127.0.0.1:1", rule),
		}
		// nginx -t does not run init_by_lua: only a start shows errors.
		_, err := servers.StartNginx(t.Context(), t.TempDir(), "/edge/alive", s.setup)
		require.ErrorContains(t, err, "site/settings.lua: shared.randomPath: x is no limit", rule)
	}
}
