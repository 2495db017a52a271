package servers_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testing/must"
	"flashsale.dev/seckill/internal/testing/servers"
)

// plainNginx writes a minimal configuration: two workers that answer 200.
func plainNginx(dir, addr string) (string, error) {
	conf := filepath.Join(dir, "nginx.conf")
	text := fmt.Sprintf(`worker_processes 2; pid %[1]s/pid; error_log stderr; events {}
http { access_log off; client_body_temp_path %[1]s/b; proxy_temp_path %[1]s/p;
fastcgi_temp_path %[1]s/f; uwsgi_temp_path %[1]s/u; scgi_temp_path %[1]s/s;
server { listen %[2]s; return 200 hello; } }`, dir, addr)
	return conf, os.WriteFile(conf, []byte(text), 0o600)
}

func TestNginx_AnswersAndStops(t *testing.T) {
	nginx := servers.Nginx(t, "/", plainNginx)
	resp := must.Get(http.Get("http://" + nginx.Addr()))(t)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusOK, resp.StatusCode)
	require.NoError(t, nginx.Restart(t.Context()))
	require.NoError(t, nginx.Stop())
	http.DefaultClient.CloseIdleConnections()
	_, err := http.Get("http://" + nginx.Addr())
	require.Error(t, err)
}

func TestNginx_ThatCannotStartShowsItsLog(t *testing.T) {
	broken := func(dir, _ string) (string, error) {
		conf := filepath.Join(dir, "nginx.conf")
		return conf, os.WriteFile(conf, []byte("no_such_directive;"), 0o600)
	}
	_, err := servers.StartNginx(t.Context(), t.TempDir(), "/", broken)
	require.ErrorContains(t, err, "no_such_directive")
	said, err := servers.CheckNginx(t.Context(), t.TempDir(), broken)
	require.Error(t, err)
	require.Contains(t, said, "no_such_directive")
	said, err = servers.CheckNginx(t.Context(), t.TempDir(), plainNginx)
	require.NoError(t, err, said)
}
