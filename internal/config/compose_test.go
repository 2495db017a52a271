package config

import (
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSettings_DeploymentsUseKnownNames checks the settings in all deployment files. A program only
// logs a warning for an unknown name.
func TestSettings_DeploymentsUseKnownNames(t *testing.T) {
	known := map[string]bool{}
	for _, s := range Settings("") {
		known[s.Name] = true
	}
	for _, file := range []string{
		"../../docker-compose.yml", "../../.env.example",
		"../../deploy/k8s/base/kustomization.yaml", "../../deploy/k8s/base/api.yaml",
		"../../deploy/k8s/base/order-consumer.yaml", "../../deploy/k8s/base/migrate.yaml",
		"../../deploy/k8s/overlays/example/secrets.env",
	} {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		names := regexp.MustCompile(`SECKILL_[A-Z_]+`).FindAllString(string(text), -1)
		require.NotEmpty(t, names, file)
		for _, name := range names {
			require.True(t, known[name], "%s names %s, which is no setting", file, name)
		}
	}
}
