//go:build measure

package e2e

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testing/installation"
)

// TestDashboards_HaveDataInARunningInstallation requires data for each query of the dashboards. It
// uses the Prometheus that SECKILL_TEST_PROMETHEUS names, such as the one of docker-compose.yml.
func TestDashboards_HaveDataInARunningInstallation(t *testing.T) {
	base := os.Getenv("SECKILL_TEST_PROMETHEUS")
	require.NotEmpty(t, base, "set SECKILL_TEST_PROMETHEUS to the URL of a Prometheus")
	requireDataForEveryQuery(t, &installation.Prometheus{Base: base})
}
