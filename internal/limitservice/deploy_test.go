package limitservice_test

import (
	"os"
	"testing"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ratelimit/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	managerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/encoding/protojson"

	"flashsale.dev/seckill/internal/ratelimit/rules"
	"flashsale.dev/seckill/internal/testing/must"
)

// exampleOf reads Envoy's example as Envoy does: strictly, by its published protocol.
func exampleOf(t *testing.T) *bootstrapv3.Bootstrap {
	var tree any
	require.NoError(t,
		yaml.Unmarshal(must.Get(os.ReadFile("../../deploy/envoy/envoy.yaml"))(t), &tree))
	var bootstrap bootstrapv3.Bootstrap
	require.NoError(t, protojson.Unmarshal(must.Get(json.Marshal(tree))(t), &bootstrap))
	return &bootstrap
}

func TestEnvoyExample_IsValid(t *testing.T) {
	require.NoError(t, exampleOf(t).ValidateAll())
}

func TestEnvoyExample_ItsDescriptorsHaveRules(t *testing.T) {
	book := must.Get(rules.Load("../../deploy/ratelimit.example.yaml"))(t)
	filter := exampleOf(t).GetStaticResources().GetListeners()[0].GetFilterChains()[0].GetFilters()[0]
	var manager managerv3.HttpConnectionManager
	require.NoError(t, filter.GetTypedConfig().UnmarshalTo(&manager))
	host := manager.GetRouteConfig().GetVirtualHosts()[0]
	login := host.GetRoutes()[0]
	require.Equal(t, "/login", login.GetMatch().GetPath())
	const address = "edgeAddress 10.0.0.1/32"
	assert.Equal(t, []string{address}, limitersOf(book, host.GetRateLimits()))
	assert.Equal(t, []string{address, "edgeLogin 10.0.0.1/32"},
		limitersOf(book, login.GetRoute().GetRateLimits()))
	for _, other := range host.GetRoutes()[1:] {
		assert.Empty(t, other.GetRoute().GetRateLimits())
	}
}

// limitersOf are the rule and the key of each descriptor that Envoy sends for a client at 10.0.0.1.
func limitersOf(book *rules.Rulebook, limits []*routev3.RateLimit) (all []string) {
	for _, limit := range limits {
		var entries []rules.Entry
		for _, action := range limit.GetActions() {
			e := rules.Entry{Key: "masked_remote_address", Value: "10.0.0.1/32"}
			if fixed := action.GetGenericKey(); fixed != nil {
				e = rules.Entry{Key: fixed.GetDescriptorKey(), Value: fixed.GetDescriptorValue()}
			}
			entries = append(entries, e)
		}
		found := "none"
		if rule, key, ok := book.ForDescriptor("edge", entries); ok {
			found = rule.Name + " " + key
		}
		all = append(all, found)
	}
	return all
}
