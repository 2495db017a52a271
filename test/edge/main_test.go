package edge

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testing/installation"
	"flashsale.dev/seckill/internal/testing/must"
	"flashsale.dev/seckill/internal/testing/servers"
)

var suite = servers.NewSuite()

const (
	patience = 90 * time.Second
	tick     = 10 * time.Millisecond
)

func TestMain(m *testing.M) { os.Exit(installation.Around(m, suite)) }

func readAnswer(t *testing.T, resp *http.Response) answer {
	defer resp.Body.Close()
	body := must.Get(io.ReadAll(resp.Body))(t)
	a := answer{Status: resp.StatusCode, Header: resp.Header, body: string(body)}
	require.NoError(t, json.Unmarshal(body, &a), a.body)
	return a
}
