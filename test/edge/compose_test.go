package edge

import (
	"net/netip"
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"flashsale.dev/seckill/internal/testing/must"
)

// composed has the fields of docker-compose.yml that the tests read.
type composed struct {
	Services map[string]struct {
		Image, Restart string
		Environment    map[string]string
		Ports          []string
		Healthcheck    *struct{ Test []string }
		Networks       any
		Volumes        []string
		Deploy         struct {
			Replicas  int
			Resources struct{ Limits struct{ Cpus, Memory string } }
		}
	}
	Networks map[string]*struct {
		Internal bool
		Ipam     struct{ Config []struct{ Subnet string } }
	}
}

func compose(t *testing.T) composed {
	text := must.Get(os.ReadFile("../../docker-compose.yml"))(t)
	var c composed
	require.NoError(t, yaml.Unmarshal(text, &c))
	return c
}

// TestCompose_EveryServiceIsKeptInBounds checks each service: its pinned image, limits, health
// check, published ports, and secrets from .env.
func TestCompose_EveryServiceIsKeptInBounds(t *testing.T) {
	c := compose(t)
	jobs := []string{"migrate", "loadtest"} // these end, and Compose waits for their exit code
	for name, s := range c.Services {
		require.Regexp(t, `^[a-z/-]+:(v?[0-9][0-9a-z.-]*|local)$`, s.Image, "%s: pinned", name)
		require.NotEmpty(t, s.Restart, name)
		require.NotEmpty(t, s.Deploy.Resources.Limits.Cpus, name)
		require.NotEmpty(t, s.Deploy.Resources.Limits.Memory, name)
		require.Equal(t, slices.Contains(jobs, name), s.Healthcheck == nil, "%s: a health check",
			name)
		require.Equal(t, name == "nginx" || name == "grafana", len(s.Ports) > 0, "%s: published",
			name)
		for setting, value := range s.Environment {
			if regexp.MustCompile(`(?i)pass|secret`).MatchString(setting) &&
				setting != "MYSQL_RANDOM_ROOT_PASSWORD" {
				require.Regexp(t, `^\$\{[A-Z_]+:[?-]`, value, "%s: %s comes from .env", name,
					setting)
			}
		}
	}
	for _, name := range []string{
		"mysql", "redis", "rabbitmq", "migrate", "api", "order-consumer",
		"nginx", "prometheus", "grafana", "loadtest", "ratelimitd",
	} {
		require.Contains(t, c.Services, name)
	}
	require.Equal(t, []int{2, 2},
		[]int{c.Services["api"].Deploy.Replicas, c.Services["order-consumer"].Deploy.Replicas})
}

// TestCompose_NetworksLeadNowhereElse requires every network but "outside" to be internal: the
// edge, for example, cannot reach MySQL. The edge exempts the load test's network from its limits,
// and the APIs trust no proxy but the edge.
func TestCompose_NetworksLeadNowhereElse(t *testing.T) {
	c := compose(t)
	for name, n := range c.Networks {
		require.Equal(t, name != "outside", n != nil && n.Internal, name)
	}
	require.NotContains(t, c.Services["nginx"].Networks, "servers")
	require.Equal(t, []any{"load"}, c.Services["loadtest"].Networks)
	for _, name := range []string{"api", "order-consumer"} { // they call providers and webhooks
		require.Contains(t, c.Services[name].Networks, "outside", name)
	}

	exempt := must.Get(os.ReadFile(deployed + "/site/exempt.conf"))(t)
	load := must.Get(netip.ParsePrefix(c.Networks["load"].Ipam.Config[0].Subnet))(t)
	require.Contains(t, string(exempt), load.String()+" 1;")

	text := must.Get(os.ReadFile("../../docker-compose.yml"))(t)
	edge := regexp.MustCompile(`ipv4_address: ([0-9.]+)`).FindSubmatch(text)
	require.NotNil(t, edge)
	require.Equal(t, string(edge[1]), c.Services["api"].Environment["SECKILL_TRUSTED_PROXIES"])
	subnet := must.Get(netip.ParsePrefix(c.Networks["edge"].Ipam.Config[0].Subnet))(t)
	require.True(t, subnet.Contains(netip.MustParseAddr(string(edge[1]))))

	// The name "api" has an address on "outside" too, from which the APIs do not trust nginx.
	upstream := must.Get(os.ReadFile(deployed + "/site/upstream.conf"))(t)
	name := regexp.MustCompile(`(?m)^ *server ([^:]+):8080 `).FindSubmatch(upstream)
	require.NotNil(t, name)
	require.Equal(t, map[string]any{
		"servers": nil, "outside": nil, "edge": map[string]any{"aliases": []any{string(name[1])}},
	}, c.Services["api"].Networks)
}
