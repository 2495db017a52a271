package rules

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"

	"flashsale.dev/seckill/internal/ratelimit"
)

// ErrNoRule says that no rule has that name.
var ErrNoRule = errors.New("ratelimit: no such rule")

// AnyKey as a limiter's key stands for the rule's own limit, for every key that
// has none of its own.
const AnyKey = "*"

// Rulebook holds the rules and what operators have set while running. Readers
// see one state or the next, never a mixture; it is safe for many goroutines.
type Rulebook struct {
	rules map[string]*Compiled
	order []string // as they stand in the file
	set   atomic.Pointer[overrides]
}

// overrides are what operators have set: by rule, by key.
type overrides struct {
	version int64
	limits  map[string]map[string]ratelimit.Terms
}

// New checks the rules. Of two with one name the later one holds.
func New(rules ...Rule) (*Rulebook, error) {
	b := &Rulebook{rules: map[string]*Compiled{}}
	b.set.Store(&overrides{})
	for i, rule := range rules {
		c, err := rule.compile()
		if err != nil {
			return nil, fmt.Errorf("ratelimit: %s: %w", describe(i, rule), err)
		}
		if _, known := b.rules[rule.Name]; !known {
			b.order = append(b.order, rule.Name)
		}
		b.rules[rule.Name] = c
	}
	return b, nil
}

// Names of the rules, sorted.
func (b *Rulebook) Names() []string { return slices.Sorted(maps.Keys(b.rules)) }

// Rule gives a rule with its defaults filled in.
func (b *Rulebook) Rule(name string) (Rule, bool) {
	c, ok := b.rules[name]
	if !ok {
		return Rule{}, false
	}
	return c.Rule, true
}

// Guarding names the rules of a route: those of the node's own memory first,
// for they cost nothing, and otherwise as they stand in the file.
func (b *Rulebook) Guarding(method, route string) []string {
	var here, shared []string
	for _, name := range b.order {
		switch rule := b.rules[name]; {
		case !rule.guards(method, route):
		case rule.Scope == ScopeNode:
			here = append(here, name)
		default:
			shared = append(shared, name)
		}
	}
	return append(here, shared...)
}

func (b *Rulebook) Find(name string) (*Compiled, error) {
	if c, ok := b.rules[name]; ok {
		return c, nil
	}
	return nil, fmt.Errorf("%w: %q", ErrNoRule, name)
}

// terms that hold for a key: what an operator set for it, what the caller
// brings (a sale's own rate), what an operator set for the whole rule, the
// rule's own.
func (b *Rulebook) Terms(rule *Compiled, key string, own *ratelimit.Terms) ratelimit.Terms {
	set := b.set.Load().limits[rule.Name]
	if t, ok := set[key]; ok {
		return t
	}
	if own != nil {
		return *own
	}
	if t, ok := set[AnyKey]; ok {
		return t
	}
	return rule.terms
}

// replace puts in what operators have set; unknown rules and limits that do not
// check are left out (a newer program may have written them).
func (b *Rulebook) replace(version int64, limits map[string]map[string]ratelimit.Limit) {
	next := &overrides{version: version, limits: map[string]map[string]ratelimit.Terms{}}
	for name, byKey := range limits {
		rule, err := b.Find(name)
		if err != nil {
			continue
		}
		next.limits[name] = map[string]ratelimit.Terms{}
		for key, limit := range byKey {
			if t, err := limit.Terms(); err == nil && (t.InRedis() || rule.Scope == ScopeNode) {
				next.limits[name][key] = t
			}
		}
	}
	b.set.Store(next)
}
