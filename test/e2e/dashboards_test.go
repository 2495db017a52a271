package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"flashsale.dev/seckill/internal/testing/installation"
	"flashsale.dev/seckill/internal/testing/must"
)

const grafana = "../../deploy/grafana/"

// dashboard has the fields of a dashboard that the tests read.
type dashboard struct {
	Title, UID string
	Panels     []struct {
		Title, Type string
		Datasource  struct{ UID string }
		GridPos     struct{ X, Y, W, H int }
		Targets     []struct{ Expr string }
	}
}

func dashboards(t *testing.T) []dashboard {
	files := must.Get(filepath.Glob(grafana + "dashboards/*.json"))(t)
	require.NotEmpty(t, files)
	var all []dashboard
	for _, file := range files {
		text := must.Get(os.ReadFile(file))(t)
		var d dashboard
		require.NoError(t, json.Unmarshal(text, &d), file)
		all = append(all, d)
	}
	return all
}

// requireDataForEveryQuery sends each query of the dashboards to Prometheus, with a window of 5
// minutes, which covers a short rush. Each must return a series.
func requireDataForEveryQuery(t *testing.T, p *installation.Prometheus) {
	for _, d := range dashboards(t) {
		for _, panel := range d.Panels {
			for _, target := range panel.Targets {
				expr := strings.ReplaceAll(target.Expr, "$__rate_interval", "5m")
				require.Eventually(t, func() bool {
					series := must.Get(p.Query(t.Context(), expr))(t, panel.Title)
					return len(series) > 0
				}, time.Minute, 200*time.Millisecond, "%s, %s: no data for %s", d.Title,
					panel.Title, expr)
			}
		}
	}
}

// TestDashboards_AreProvisioned checks that Grafana finds the dashboards where docker-compose.yml
// mounts them. No two have one UID, and each panel names the provisioned data source.
func TestDashboards_AreProvisioned(t *testing.T) {
	var sources struct {
		Datasources []struct{ UID, Type, URL string }
	}
	read(t, grafana+"provisioning/datasources/prometheus.yml", &sources)
	require.Len(t, sources.Datasources, 1)
	var providers struct {
		Providers []struct{ Options struct{ Path string } }
	}
	read(t, grafana+"provisioning/dashboards/seckill.yml", &providers)
	require.Len(t, providers.Providers, 1)
	var composed struct {
		Services map[string]struct{ Volumes []string }
	}
	read(t, "../../docker-compose.yml", &composed)
	require.Contains(t, composed.Services["grafana"].Volumes,
		"./deploy/grafana/dashboards:"+providers.Providers[0].Options.Path+":ro")
	uids := map[string]bool{}
	for _, d := range dashboards(t) {
		require.NotEmpty(t, d.UID)
		require.False(t, uids[d.UID], "two dashboards have the UID %s", d.UID)
		uids[d.UID] = true
		for _, panel := range d.Panels {
			if panel.Type != "row" {
				require.Equal(t, sources.Datasources[0].UID, panel.Datasource.UID, panel.Title)
				require.LessOrEqual(t, panel.GridPos.X+panel.GridPos.W, 24, panel.Title)
			}
		}
	}
}

// TestDashboards_ShowWhatAlertsRead checks that the engineer whom an alert calls sees its series on
// a dashboard, and that SeckillErrorRatio's runbook finds routes with reasons there.
func TestDashboards_ShowWhatAlertsRead(t *testing.T) {
	var queries strings.Builder
	for _, d := range dashboards(t) {
		for _, panel := range d.Panels {
			for _, target := range panel.Targets {
				queries.WriteString(target.Expr + "\n")
			}
		}
	}
	for _, group := range alerts(t).Groups {
		for _, rule := range group.Rules {
			for _, name := range regexp.MustCompile(`seckill_\w+`).FindAllString(rule.Expr, -1) {
				require.Contains(t, queries.String(), name, rule.Alert)
			}
		}
	}
	require.Contains(t, queries.String(), "sum by (route, reason)")
}

func read(t *testing.T, file string, into any) {
	text := must.Get(os.ReadFile(file))(t)
	require.NoError(t, yaml.Unmarshal(text, into), file)
}
