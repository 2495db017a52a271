package rules

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"flashsale.dev/seckill/internal/ratelimit"
)

// ErrNoRule means that no rule has the name.
var ErrNoRule = errors.New("ratelimit: no such rule")

// AnyKey is the key of an operator's limit for all keys of a rule that have no limit
// of their own.
const AnyKey = "*"

// Rulebook holds the rules and the operators' limits. The operators' limits change atomically and
// as a whole. It is safe for many goroutines. Readers take no lock, because every request reads it.
type Rulebook struct {
	rules map[string]*Compiled
	order []string // those of scope node first, and otherwise in the order of the file
	set   atomic.Pointer[overrides]
	found atomic.Pointer[map[routeKey][]*Compiled] // see ForRoute
}

// routeKey is a route with its method.
type routeKey struct{ method, route string }

// maxCachedRoutes bounds the cache of ForRoute. The API has fewer routes.
const maxCachedRoutes = 500

// overrides are the operators' limits, by rule and key. The version is that of Redis; 0 means that
// operators have changed nothing.
type overrides struct {
	version int64
	limits  map[string]map[string]*ratelimit.Params
}

// New checks the rules. Of two with the same name the later one applies. The error
// wraps a *ratelimit.FieldError.
func New(rules ...Rule) (*Rulebook, error) {
	b := &Rulebook{rules: map[string]*Compiled{}}
	b.set.Store(&overrides{})
	b.found.Store(&map[routeKey][]*Compiled{})
	for i, rule := range rules {
		c, err := rule.compile()
		if err != nil {
			return nil, fmt.Errorf("ratelimit: %s: %w", label(i, rule), err)
		}
		if _, known := b.rules[rule.Name]; !known {
			b.order = append(b.order, rule.Name)
		}
		b.rules[rule.Name] = c
	}
	slices.SortStableFunc(b.order, func(x, y string) int {
		return cmp.Compare(b.rules[y].Scope, b.rules[x].Scope) // "node" before "global"
	})
	return b, nil
}

// ForRoute returns the rules of a route: those of scope node first, and otherwise in the order of
// the file. Rules of scope node cost no call. A caller whom this node denies then takes no permits
// from the shared limits. The rules never change, so each route is looked up once. The caller must
// not modify the result.
func (b *Rulebook) ForRoute(method, route string) []*Compiled {
	key := routeKey{method, route}
	cached := *b.found.Load()
	found, ok := cached[key]
	if ok {
		return found
	}
	for _, name := range b.order {
		if rule := b.rules[name]; rule.matches(method, route) {
			found = append(found, rule)
		}
	}
	if len(cached) < maxCachedRoutes {
		// a concurrent call's route may be lost, and is then looked up again
		next := maps.Clone(cached)
		next[routeKey{strings.Clone(method), route}] = found // method is a part of the request
		b.found.Store(&next)
	}
	return found
}

// Unmatched returns the rules whose route is none of the given ones. Each of these is a method and
// a pattern, such as "GET /orders". Rules without a route are not in the result.
func (b *Rulebook) Unmatched(routes []string) (unmatched []*Compiled) {
	for _, name := range b.order {
		rule := b.rules[name]
		known := slices.ContainsFunc(routes, func(s string) bool {
			method, route, _ := strings.Cut(s, " ")
			return rule.matches(method, route)
		})
		if rule.Route != "" && !known {
			unmatched = append(unmatched, rule)
		}
	}
	return unmatched
}

// Find returns a rule, or ErrNoRule.
func (b *Rulebook) Find(name string) (*Compiled, error) {
	if c, ok := b.rules[name]; ok {
		return c, nil
	}
	return nil, fmt.Errorf("%w: %q", ErrNoRule, name)
}

// Params are the limit that applies to a key. own is the key's own limit, such as a sale's
// rate, or nil. Nobody may write them.
func (b *Rulebook) Params(rule *Compiled, key string, own *ratelimit.Params) *ratelimit.Params {
	t, _ := b.effective(rule, key, own)
	return t
}

// effective is the first existing limit of four, with its origin. The order is: operator's limit of
// the key, own limit of the key, operator's limit of all keys, limit of the rule.
func (b *Rulebook) effective(
	rule *Compiled, key string, own *ratelimit.Params,
) (t *ratelimit.Params, source string) {
	set := b.set.Load().limits[rule.Name]
	if t, ok := set[key]; ok {
		return t, "operator"
	}
	if own != nil {
		return own, "sale"
	}
	if t, ok := set[AnyKey]; ok {
		return t, "operator"
	}
	return &rule.params, "rule"
}

// replace installs the operators' limits. A newer release, or a person, may have written unknown
// rules and invalid limits. It skips the rules. A key whose limit is invalid keeps its last valid
// one. The limit of the rule may be far above what the operator has allowed.
func (b *Rulebook) replace(version int64, limits map[string]map[string]ratelimit.Limit) {
	before := b.set.Load().limits
	next := &overrides{version: version, limits: map[string]map[string]*ratelimit.Params{}}
	for name, byKey := range limits {
		rule, err := b.Find(name)
		if err != nil {
			continue
		}
		next.limits[name] = map[string]*ratelimit.Params{}
		for key, limit := range byKey {
			t, err := limit.Params()
			if err == nil && (t.InRedis() || rule.Scope == ScopeNode) {
				next.limits[name][key] = &t
			} else if last, ok := before[name][key]; ok {
				next.limits[name][key] = last
			}
		}
	}
	b.set.Store(next)
}

// settings returns the limit of every rule and the operators' limits, by rule and key. * sorts
// before every other key that a limiter has.
func (b *Rulebook) settings() (all []Setting) {
	set := b.set.Load().limits
	for _, name := range slices.Sorted(maps.Keys(b.rules)) {
		rule := b.rules[name]
		params, source := b.effective(rule, AnyKey, nil)
		all = append(all, Setting{Type: name, Key: AnyKey, Limit: params.Limit(), Source: source})
		for _, key := range slices.Sorted(maps.Keys(set[name])) {
			if key != AnyKey {
				all = append(all, Setting{
					Type: name, Key: key, Limit: set[name][key].Limit(), Source: "operator",
				})
			}
		}
	}
	return all
}
