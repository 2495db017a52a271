package installation

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testing/servers"
)

// Prometheus is a real Prometheus that scrapes the installation's programs five times a second
// until the test ends.
type Prometheus struct{ Base string }

// prometheusFile is the path of Debian's program.
const prometheusFile = "/usr/bin/prometheus"

// Prometheus starts a Prometheus. rules may name a file of rules, which it evaluates four times a
// second.
func (r *Installation) Prometheus(t testing.TB, rules ...string) *Prometheus {
	dir, addr := t.TempDir(), servers.FreeAddr(t, "127.0.0.1")
	file := filepath.Join(dir, "prometheus.yml")
	require.NoError(t, os.WriteFile(file, []byte(r.scrapes(rules)), 0o600))
	process := &servers.Process{
		Path: prometheusFile, File: filepath.Join(dir, "log"),
		Args: []string{
			"--config.file=" + file, "--storage.tsdb.path=" + filepath.Join(dir, "data"),
			"--web.listen-address=" + addr, "--log.level=warn",
		},
	}
	require.NoError(t, process.Start())
	t.Cleanup(func() { _ = process.Kill() })
	p := &Prometheus{Base: "http://" + addr}
	require.Eventually(t, func() bool {
		series, err := p.Query(t.Context(), "sum(up)")
		return err == nil && len(series) == 1 &&
			series[0].Number() == float64(len(r.APIs)+len(r.Consumers))
	}, time.Minute, 50*time.Millisecond, "prometheus does not scrape all programs:\n%s", process)
	return p
}

func (r *Installation) scrapes(rules []string) string {
	var b strings.Builder
	b.WriteString("global:\n  {scrape_interval: 200ms, scrape_timeout: 200ms, evaluation_interval: 250ms}\n")
	fmt.Fprintf(&b, "rule_files: [%s]\n", strings.Join(rules, ", "))
	b.WriteString("scrape_configs:\n")
	for job, programs := range map[string][]*Program{"api": r.APIs, "order-consumer": r.Consumers} {
		var addrs []string
		for _, p := range programs {
			addrs = append(addrs, p.OpsAddr())
		}
		fmt.Fprintf(&b, "  - {job_name: %s, static_configs: [{targets: [%s]}]}\n", job,
			"'"+strings.Join(addrs, "', '")+"'")
	}
	return b.String()
}

// Series is one series of a query's result.
type Series struct {
	Metric map[string]string `json:"metric"`
	Value  [2]any            `json:"value"`
}

// Number returns the series' value.
func (s Series) Number() float64 {
	var n float64
	text, _ := s.Value[1].(string)
	_, _ = fmt.Sscan(text, &n) // 0 for text that is not a number
	return n
}

// Query returns the current values of an expression.
func (p *Prometheus) Query(ctx context.Context, expr string) ([]Series, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet,
		p.Base+"/api/v1/query?query="+url.QueryEscape(expr), http.NoBody)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var answer struct {
		Error string
		Data  struct{ Result []Series }
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		return nil, err
	}
	if answer.Error != "" {
		return nil, fmt.Errorf("prometheus refuses %s: %s", expr, answer.Error)
	}
	return answer.Data.Result, nil
}

// Firing returns the firing alerts.
func (p *Prometheus) Firing(ctx context.Context) (map[string]bool, error) {
	series, err := p.Query(ctx, `ALERTS{alertstate="firing"}`)
	firing := make(map[string]bool, len(series))
	for _, s := range series {
		firing[s.Metric["alertname"]] = true
	}
	return firing, err
}
