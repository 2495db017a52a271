package rules

import (
	"context"
	"fmt"
	"time"

	"flashsale.dev/seckill/internal/ratelimit"
)

// Setting is what an operator sees of one limiter.
type Setting struct {
	Type string `json:"type"` // the rule's name
	Key  string `json:"key"`  // what it counts by, or * for every key
	ratelimit.Limit
	// Source is where the limit comes from: "operator", "sale" or "rule".
	Source string `json:"source"`
	// Remaining permits and the time to full, of a single key.
	Remaining   *int64 `json:"remaining,omitempty"`
	ResetMillis *int64 `json:"resetMillis,omitempty"`
}

// Limiters are the limiters that an Admin looks at and drops.
type Limiters interface {
	// Peek answers as a take would and charges nothing.
	Peek(ctx context.Context, asks ...ratelimit.Ask) (ratelimit.Decision, error)
	// Forget drops limiters: the next ask finds them as new.
	Forget(ctx context.Context, keys ...string) error
}

// Admin reads and changes limiters while they run, for operators.
type Admin struct {
	book  *Rulebook
	sync  *Sync
	store Limiters
	own   OwnLimit
}

// OwnLimit gives the limit that a key brings along, as a sale does its rate;
// false where it brings none.
type OwnLimit func(ctx context.Context, rule, key string) (ratelimit.Limit, bool)

// NewAdmin makes one over the store that the rules are kept in.
func NewAdmin(book *Rulebook, sync *Sync, store Limiters) *Admin {
	none := func(context.Context, string, string) (ratelimit.Limit, bool) { return ratelimit.Limit{}, false }
	return &Admin{book: book, sync: sync, store: store, own: none}
}

// WithOwn gives an Admin that also knows the limits which keys bring along.
func (a *Admin) WithOwn(own OwnLimit) *Admin {
	with := *a
	with.own = own
	return &with
}

const maxAdminKey = 200

func (a *Admin) find(name, key string) (*Compiled, error) {
	rule, err := a.book.Find(name)
	if err != nil {
		return nil, err
	}
	if key == "" || len(key) > maxAdminKey {
		return nil, ratelimit.BadField("key", "must be 1 to %d bytes", maxAdminKey)
	}
	return rule, nil
}

// Get gives the limit that holds for a key and, where all nodes share it, how
// full it is. An unknown rule is ErrNoRule.
func (a *Admin) Get(ctx context.Context, name, key string) (Setting, error) {
	rule, err := a.find(name, key)
	if err != nil {
		return Setting{}, err
	}
	if err := a.sync.RunOnce(ctx); err != nil {
		return Setting{}, err
	}
	return a.setting(ctx, rule, key)
}

func (a *Admin) setting(ctx context.Context, rule *Compiled, key string) (Setting, error) {
	terms, source := a.holds(ctx, rule, key)
	s := Setting{Type: rule.Name, Key: key, Limit: terms.Limit(), Source: source}
	if key == AnyKey || rule.Scope != ScopeGlobal {
		return s, nil
	}
	ctx, cancel := context.WithTimeout(ctx, syncTimeout)
	defer cancel()
	d, err := a.store.Peek(ctx, ratelimit.Ask{Key: rule.RedisKey(key), Terms: terms, N: 1})
	if err != nil {
		return Setting{}, err
	}
	s.Remaining, s.ResetMillis = ptr(d.Remaining), ptr((d.ResetAfter + time.Millisecond - 1).Milliseconds())
	return s, nil
}

// holds is Rulebook.terms with the key's own limit, and where it comes from.
func (a *Admin) holds(ctx context.Context, rule *Compiled, key string) (ratelimit.Terms, string) {
	set := a.book.set.Load().limits[rule.Name]
	if t, ok := set[key]; ok {
		return t, "operator"
	}
	if limit, ok := a.own(ctx, rule.Name, key); ok && key != AnyKey {
		if t, err := limit.Terms(); err == nil {
			return t, "sale"
		}
	}
	if t, ok := set[AnyKey]; ok {
		return t, "operator"
	}
	return rule.terms, "rule"
}

// Set lays a change over the limit that holds for the key, on every node
// within 1 s. Nothing is refilled. What does not check changes nothing: the
// error is a *FieldError.
func (a *Admin) Set(ctx context.Context, name, key string, change Change) (Setting, error) {
	rule, err := a.find(name, key)
	if err != nil {
		return Setting{}, err
	}
	if err := a.sync.RunOnce(ctx); err != nil {
		return Setting{}, err
	}
	held, _ := a.holds(ctx, rule, key)
	limit := change.Over(held.Limit())
	terms, err := limit.Terms()
	if err != nil {
		return Setting{}, err
	}
	if rule.Scope == ScopeGlobal && !terms.InRedis() {
		return Setting{}, ratelimit.BadField("algorithm", "%s lives in process only", limit.Algorithm)
	}
	if err := a.change(ctx, name, key, &limit); err != nil {
		return Setting{}, err
	}
	return a.setting(ctx, rule, key)
}

// Delete takes an operator's limit away again and the key's bucket with it: the
// next caller finds a new one under the rule's own limit.
func (a *Admin) Delete(ctx context.Context, name, key string) error {
	rule, err := a.find(name, key)
	if err != nil {
		return err
	}
	if err := a.change(ctx, name, key, nil); err != nil {
		return err
	}
	if key == AnyKey || rule.Scope != ScopeGlobal {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, syncTimeout)
	defer cancel()
	return a.store.Forget(ctx, rule.RedisKey(key))
}

func (a *Admin) change(ctx context.Context, name, key string, limit *ratelimit.Limit) error {
	if err := a.sync.set(ctx, name, key, limit); err != nil {
		return err
	}
	if err := a.sync.RunOnce(ctx); err != nil {
		return fmt.Errorf("ratelimit: stored, and this node will know it later: %w", err)
	}
	return nil
}
