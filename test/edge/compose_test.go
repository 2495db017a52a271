package edge

import (
	"net"
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/require"

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
	// A key of a merged map may be overridden.
	require.NoError(t, yaml.UnmarshalWithOptions(text, &c, yaml.AllowDuplicateMapKey()))
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
		"nginx", "prometheus", "grafana", "loadtest",
	} {
		require.Contains(t, c.Services, name)
	}
	require.Equal(t, []int{2, 2},
		[]int{c.Services["api"].Deploy.Replicas, c.Services["order-consumer"].Deploy.Replicas})
}

// TestCompose_NetworksLeadNowhereElse requires every network but "outside" to be internal. The
// edge, for example, cannot reach MySQL.
func TestCompose_NetworksLeadNowhereElse(t *testing.T) {
	c := compose(t)
	for name, n := range c.Networks {
		require.Equal(t, name != "outside", n != nil && n.Internal, name)
	}
	require.NotContains(t, c.Services["nginx"].Networks, "servers")
	require.Equal(t, []any{"load"}, c.Services["loadtest"].Networks)
}

// TestCompose_NetworkOfTheLoadTestIsExempt compares site/exempt.conf with the compose file.
func TestCompose_NetworkOfTheLoadTestIsExempt(t *testing.T) {
	exempt := must.Get(os.ReadFile(deployed + "/site/exempt.conf"))(t)
	network := compose(t).Networks["load"].Ipam.Config[0].Subnet
	_, _, err := net.ParseCIDR(network)
	require.NoError(t, err)
	require.Contains(t, string(exempt), network+" 1;")
}

// TestCompose_APIsBelieveTheEdgeOnly checks that the edge is the only trusted proxy of the APIs.
func TestCompose_APIsBelieveTheEdgeOnly(t *testing.T) {
	text := must.Get(os.ReadFile("../../docker-compose.yml"))(t)
	edge := regexp.MustCompile(`ipv4_address: ([0-9.]+)`).FindSubmatch(text)
	require.NotNil(t, edge)
	c := compose(t)
	require.Equal(t, string(edge[1]), c.Services["api"].Environment["SECKILL_TRUSTED_PROXIES"])
	_, network, err := net.ParseCIDR(c.Networks["edge"].Ipam.Config[0].Subnet)
	require.NoError(t, err)
	require.True(t, network.Contains(net.ParseIP(string(edge[1]))))
}
