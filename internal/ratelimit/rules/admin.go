package rules

import (
	"context"
	"fmt"
	"time"

	"flashsale.dev/seckill/internal/ratelimit"
	redislimit "flashsale.dev/seckill/internal/ratelimit/redis"
)

// Setting is the limit of one key, for operators. The API and seckillctl print it unchanged.
type Setting struct {
	Type string `json:"type"` // the rule's name
	Key  string `json:"key"`  // such as a goods id, or * for every key
	ratelimit.Limit
	// Source is the origin of the limit: "operator", "sale" or "rule".
	Source string `json:"source"`
	// Remaining permits and the time until the limiter is full. Only for a single key
	// of a rule of scope global.
	Remaining   *int64 `json:"remaining,omitempty"`
	ResetMillis *int64 `json:"resetMillis,omitempty"`
}

// Admin reads and changes limits at run time, for operators. It writes every change to Redis, and
// Sync reads it back. This node therefore applies a change in the same way as the others.
type Admin struct {
	book  *Rulebook
	sync  *Sync
	store *redislimit.Store
	own   OwnLimit
	audit Audit
}

// OwnLimit returns the limit that a key itself has, such as a sale's rate; false if
// it has none.
type OwnLimit func(ctx context.Context, rule, key string) (ratelimit.Limit, bool)

// Audit records an operator's change that was made: the limit that applied to a key before, and the
// new one, or nil where the operator's limit is removed.
type Audit func(ctx context.Context, rule, key string, was ratelimit.Limit, became *ratelimit.Limit)

// NewAdmin makes an Admin of the rules in book. own and audit may be nil.
func NewAdmin(
	book *Rulebook, sync *Sync, store *redislimit.Store, own OwnLimit, audit Audit,
) *Admin {
	return &Admin{book: book, sync: sync, store: store, own: own, audit: audit}
}

// maxAdminKey bounds what a mistyped key can occupy in Redis, where an override never expires.
const maxAdminKey = 200

func (a *Admin) find(name, key string) (*Compiled, error) {
	rule, err := a.book.Find(name)
	if err != nil {
		return nil, err
	}
	return rule, CheckKey(key)
}

// CheckKey returns a *ratelimit.FieldError for a key that no limiter has.
func CheckKey(key string) error {
	if key == "" || len(key) > maxAdminKey {
		return ratelimit.BadField("key", "must be 1 to %d bytes", maxAdminKey)
	}
	return nil
}

// Get returns the effective limit of a key, and how full it is if all nodes share it. Errors are
// ErrNoRule, a *ratelimit.FieldError of the key, or a failure of Redis. It syncs first, so that it
// includes a change that an operator has just made on another node.
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

// setting returns the effective limit of a key, with its usage where Redis has it.
func (a *Admin) setting(ctx context.Context, rule *Compiled, key string) (Setting, error) {
	params, source := a.effective(ctx, rule, key)
	s := Setting{Type: rule.Name, Key: key, Limit: params.Limit(), Source: source}
	// * stands for many limiters, and a limiter of scope node may be in another process.
	if key == AnyKey || rule.Scope != ScopeGlobal {
		return s, nil
	}
	ctx, cancel := context.WithTimeout(ctx, syncTimeout)
	defer cancel()
	d, err := a.store.Peek(ctx, ratelimit.Request{
		Key: rule.RedisKey(key, params.Kind), Params: *params, N: 1,
	})
	if err != nil {
		return Setting{}, err
	}
	s.Remaining = &d.Remaining
	s.ResetMillis = new((d.ResetAfter + time.Millisecond - 1).Milliseconds())
	return s, nil
}

// effective is the limit that applies to a key, and its origin.
func (a *Admin) effective(
	ctx context.Context, rule *Compiled, key string,
) (*ratelimit.Params, string) {
	var own *ratelimit.Params
	if a.own != nil && key != AnyKey {
		if limit, ok := a.own(ctx, rule.Name, key); ok {
			if t, err := limit.Params(); err == nil {
				own = &t
			}
		}
	}
	return a.book.effective(rule, key, own)
}

// Set applies a change to the effective limit of a key, on every node within 1 s. It refills no
// permits. An invalid limit changes nothing: the error is a *ratelimit.FieldError.
func (a *Admin) Set(ctx context.Context, name, key string, change Change) (Setting, error) {
	rule, err := a.find(name, key)
	if err == nil {
		err = change.check()
	}
	if err != nil {
		return Setting{}, err
	}
	err = a.update(ctx, rule, key, func(held ratelimit.Limit) (*ratelimit.Limit, error) {
		limit := change.Apply(held)
		params, err := limit.Params()
		if err == nil && rule.Scope == ScopeGlobal {
			err = params.CheckRedis()
		}
		return &limit, err
	})
	if err != nil {
		return Setting{}, err
	}
	return a.setting(ctx, rule, key)
}

// Delete removes an operator's limit and resets the key's limiter. The sale's or the
// rule's limit applies again.
func (a *Admin) Delete(ctx context.Context, name, key string) error {
	rule, err := a.find(name, key)
	if err != nil {
		return err
	}
	remove := func(ratelimit.Limit) (*ratelimit.Limit, error) { return nil, nil }
	if err := a.update(ctx, rule, key, remove); err != nil {
		return err
	}
	if key == AnyKey || rule.Scope != ScopeGlobal {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, syncTimeout)
	defer cancel()
	for _, redisKey := range rule.RedisKeys(key) {
		if err := a.store.Reset(ctx, redisKey); err != nil {
			return err
		}
	}
	return nil
}

// maxTries bounds how often a change begins again. Each further try means that another operator has
// changed the limit of the same key meanwhile.
const maxTries = 5

// update stores the limit that next makes of the effective one; nil removes the operator's. If
// another operator changes the key's limit meanwhile, it begins again, so that no change is lost.
func (a *Admin) update(
	ctx context.Context, rule *Compiled, key string,
	next func(ratelimit.Limit) (*ratelimit.Limit, error),
) error {
	for range maxTries {
		if err := a.sync.runBeforeChange(ctx); err != nil {
			return err
		}
		was := a.sync.stored(rule.Name, key) // before held, which must not be older
		held, _ := a.effective(ctx, rule, key)
		limit, err := next(held.Limit())
		if err != nil {
			return err
		}
		done, err := a.sync.set(ctx, rule.Name, key, was, limit)
		if err != nil {
			return err
		}
		if done {
			return a.changed(ctx, rule.Name, key, held.Limit(), limit)
		}
	}
	return fmt.Errorf("ratelimit: other operators changed the limit %d times meanwhile", maxTries)
}

// changed records a change and reads the limit back at once, so that the same operator gets the
// changed limit on this node.
func (a *Admin) changed(
	ctx context.Context, name, key string, was ratelimit.Limit, limit *ratelimit.Limit,
) error {
	if a.audit != nil {
		a.audit(ctx, name, key, was, limit)
	}
	if err := a.sync.RunOnce(ctx); err != nil {
		return fmt.Errorf(
			"ratelimit: the limit is stored, but this node could not read it back: %w", err)
	}
	return nil
}

// List returns the limits of all rules, and after each rule's the operators' limits of its keys.
// The order is by name and key, and the rule's own limit comes first. It syncs first, as Get does.
func (a *Admin) List(ctx context.Context) ([]Setting, error) {
	if err := a.sync.RunOnce(ctx); err != nil {
		return nil, err
	}
	return a.book.settings(), nil
}
