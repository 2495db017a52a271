package rules_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"flashsale.dev/seckill/internal/ratelimit/rules"
)

const descriptorRules = `
rules:
  - {name: byRouteOnly, route: /orders}
  - {name: first, descriptor: [order=first]}
  - {name: ordered, descriptor: [order]}
  - {name: client, descriptor: [client]}
  - {name: clientOfEdge, domain: edge, descriptor: [client]}
  - {name: partner, descriptor: [client=partner]}
  - {name: clientPath, descriptor: [client, path]}
  - {name: clientLogin, descriptor: [client, path=/login]}
  - {name: partnerPath, descriptor: [client=partner, path]}
`

func TestForDescriptor_FindsTheMostSpecificRule(t *testing.T) {
	b := book(t, descriptorRules)
	for descriptor, want := range map[string]string{
		"x client=a":                        "client a",
		"edge client=a":                     "clientOfEdge a",
		"x client=":                         "client -",
		"edge client=partner":               "partner all",
		"x client=partners":                 "client partners",
		"x order=first":                     "first all",
		"x client=a path=/b":                "clientPath a:/b",
		"x client=a path=/login":            "clientLogin a",
		"x client=partner path=/login":      "partnerPath /login",
		"x path=/login":                     "none",
		"x path=/login client=a":            "none",
		"x client=a path=/login method=GET": "none",
		"x":                                 "none",
	} {
		domain, rest, _ := strings.Cut(descriptor, " ")
		assert.Equal(t, want, found(b, domain, rest), descriptor)
	}
}

func TestForDescriptor_HashesWhatAKeyMayNotContain(t *testing.T) {
	b := book(t, descriptorRules)
	key := func(client, path string) string {
		_, key, _ := b.ForDescriptor("x",
			[]rules.Entry{{Key: "client", Value: client}, {Key: "path", Value: path}})
		return key
	}
	assert.NotEqual(t, key("a:b", "c"), key("a", "b:c"))
	assert.NotContains(t, key("{a}", "b"), "{")
}

func TestForDescriptor_SingleValueIsTheKeyThatOperatorsName(t *testing.T) {
	b := book(t, descriptorRules)
	key := func(client string) string {
		_, key, _ := b.ForDescriptor("x", []rules.Entry{{Key: "client", Value: client}})
		return key
	}
	for _, client := range []string{"alice@example.com", "2001:db8::/64", "10.0.0.1/32"} {
		assert.Equal(t, client, key(client))
	}
	for _, client := range []string{"*", "{a}", "#0123", strings.Repeat("a", 201)} {
		assert.Regexp(t, "^#[0-9a-f]{32}$", key(client))
	}
}

// published are the examples in the README of envoyproxy/ratelimit, as rules. Envoy's nested lists
// are one list here. A rule of limit 0 and unlimited rules do not exist here.
const published = `
rules:
  - {name: users, domain: mongo_cps, descriptor: [database=users], permitsPerSecond: 500}
  - {name: default, domain: mongo_cps, descriptor: [database=default], permitsPerSecond: 500}
  - {name: marketing, domain: messaging, descriptor: [message_type=marketing, to_number], limit: 5, interval: 24h}
  - {name: toNumber, domain: messaging, descriptor: [to_number], limit: 100, interval: 24h}
  - {name: address, domain: edge_proxy_per_ip, descriptor: [remote_address], permitsPerSecond: 10}
  - {name: listed, domain: edge_proxy_per_ip, descriptor: [remote_address=50.0.0.5], limit: 1, interval: 24h}
  - {name: level, domain: example4, descriptor: [key=value], permitsPerSecond: 300}
  - {name: azure, domain: internal, descriptor: [azure], limit: 100, interval: 60s}
  - {name: userA, domain: example6, descriptor: [service, user=user-a], permitsPerSecond: 10, dryRun: true}
  - {name: userB, domain: example6, descriptor: [service, user=user-b], permitsPerSecond: 20}
  - {name: key, domain: example8, descriptor: [key1], limit: 10, interval: 60s}
  - {name: keyValue, domain: example8, descriptor: [key1=value1], limit: 20, interval: 60s}
  - {name: values, domain: example9, descriptor: [key1=value*], limit: 20, interval: 60s}
  - {name: valuesB, domain: example9, descriptor: [key1=valueB*], limit: 20, interval: 60s}
  - {name: valueBC, domain: example9, descriptor: [key1=valueBC], limit: 20, interval: 60s}
`

func TestForDescriptor_FindsTheRulesOfPublishedExamples(t *testing.T) {
	b := book(t, published)
	for descriptor, want := range map[string]string{
		"mongo_cps database=users":                                  "users all",
		"mongo_cps database=default":                                "default all",
		"mongo_cps database=other":                                  "none",
		"messaging message_type=marketing to_number=2061111111":     "marketing 2061111111",
		"messaging message_type=marketing to_number=2062222222":     "marketing 2062222222",
		"messaging message_type=transactional to_number=2061111111": "none",
		"messaging to_number=2061111111":                            "toNumber 2061111111",
		"edge_proxy_per_ip remote_address=50.0.0.1":                 "address 50.0.0.1",
		"edge_proxy_per_ip remote_address=50.0.0.5":                 "listed all",
		"example4 key=value":                                        "level all",
		"example4 key=value subkey=subvalue":                        "none",
		"internal azure=x":                                          "azure x",
		"internal ldap=x":                                           "none",
		"example6 service=auth-service user=user-a":                 "userA auth-service",
		"example6 service=auth-service user=user-b":                 "userB auth-service",
		"example8 key1=unspecified_value":                           "key unspecified_value",
		"example8 key1=value1":                                      "keyValue all",
		"example9 key1=value_1":                                     "values value_1",
		"example9 key1=value_2":                                     "values value_2",
		"example9 key1=valueBX":                                     "valuesB valueBX",
		"example9 key1=valueBC":                                     "valueBC all",
		"example9 key1=other":                                       "none",
	} {
		domain, rest, _ := strings.Cut(descriptor, " ")
		assert.Equal(t, want, found(b, domain, rest), descriptor)
	}
}

// found is the rule's name and the key of a descriptor of "key=value" entries.
func found(b *rules.Rulebook, domain, descriptor string) string {
	var entries []rules.Entry
	for _, item := range strings.Fields(descriptor) {
		key, value, _ := strings.Cut(item, "=")
		entries = append(entries, rules.Entry{Key: key, Value: value})
	}
	rule, key, ok := b.ForDescriptor(domain, entries)
	if !ok {
		return "none"
	}
	return rule.Name + " " + key
}
