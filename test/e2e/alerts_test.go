package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testing/must"
)

const (
	rulesFile = "../../deploy/prometheus/rules/seckill.yml"
	testsFile = "../../deploy/prometheus/tests/seckill_test.yml"
)

// ruleFile has the fields of the rule file that the tests read.
type ruleFile struct {
	Groups []struct {
		Rules []struct {
			Alert, Expr string
			Labels      map[string]string
			Annotations map[string]string
		}
	}
}

func alerts(t *testing.T) ruleFile {
	var rules ruleFile
	read(t, rulesFile, &rules)
	require.NotEmpty(t, rules.Groups)
	return rules
}

// TestAlerts_PromtoolAcceptsThem runs promtool's check and unit tests on the rules.
func TestAlerts_PromtoolAcceptsThem(t *testing.T) {
	for _, args := range [][]string{
		{"check", "rules", rulesFile},
		{"test", "rules", testsFile},
		{"check", "config", "--syntax-only", "../../deploy/prometheus/prometheus.yml"},
	} {
		out, err := exec.CommandContext(t.Context(), "promtool", args...).CombinedOutput()
		require.NoError(t, err, "%v:\n%s", args, out)
	}
}

// TestAlerts_EachHasRunbookAndTest requires for each alert a runbook, a drill, and a promtool test
// that it fires and ends.
func TestAlerts_EachHasRunbookAndTest(t *testing.T) {
	operations := must.Get(os.ReadFile("../../docs/how-to/operate.md"))(t)
	var tests struct {
		Tests []struct {
			AlertRuleTest []struct {
				Alertname string           `yaml:"alertname"`
				ExpAlerts []map[string]any `yaml:"exp_alerts"`
			} `yaml:"alert_rule_test"`
		}
	}
	read(t, testsFile, &tests)
	fires, quiet := map[string]bool{}, map[string]bool{}
	for _, test := range tests.Tests {
		for _, c := range test.AlertRuleTest {
			if len(c.ExpAlerts) > 0 {
				fires[c.Alertname] = true
			} else {
				quiet[c.Alertname] = true
			}
		}
	}
	for _, group := range alerts(t).Groups {
		for _, rule := range group.Rules {
			require.Contains(t, string(operations), "\n### "+rule.Alert+"\n")
			require.Equal(t, "docs/how-to/operate.md#"+strings.ToLower(rule.Alert),
				rule.Annotations["runbook_url"])
			require.NotEmpty(t, rule.Annotations["summary"], rule.Alert)
			require.Contains(t, []string{"page", "ticket"}, rule.Labels["severity"], rule.Alert)
			require.True(t, fires[rule.Alert] && quiet[rule.Alert],
				"%s: no promtool test that it fires, or none that it ends", rule.Alert)
			require.Contains(t, drillsOf(), rule.Alert, "no drill")
		}
	}
}

// impatientRules writes a copy of the rules whose delays, windows and thresholds are short enough
// for a test, and returns its path.
func impatientRules(t *testing.T) string {
	text := must.Get(os.ReadFile(rulesFile))(t)
	quick := strings.NewReplacer("for: 30s", "for: 1s", "for: 15s", "for: 1s", "for: 1m", "for: 1s",
		"[1m]", "[5s]", "[5m]", "[5s]", "[1h]", "[5s]", "> 60", "> 6").Replace(string(text))
	file := filepath.Join(t.TempDir(), "seckill.yml")
	require.NoError(t, os.WriteFile(file, []byte(quick), 0o600))
	return file
}
