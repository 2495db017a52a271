package rules

import (
	"errors"
	"fmt"
	"hash/maphash"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"flashsale.dev/seckill/internal/ratelimit"
)

// Scope is the place of a rule's limiters.
type Scope string

// The scopes: in Redis, for all nodes, or in each node's memory.
const (
	ScopeGlobal Scope = "global"
	ScopeNode   Scope = "node"
)

// OnError is the decision of a rule when Redis does not decide in time. Local is the default: a
// failing Redis then neither admits everything nor stops the sale.
type OnError string

// Closed denies as unavailable, open admits, and local decides in this node's memory
// by its share of the limit.
const (
	OnErrorClosed OnError = "closed"
	OnErrorOpen   OnError = "open"
	OnErrorLocal  OnError = "local"
)

// OnMissingKey is the treatment of a request that lacks an attribute, or has an invalid one. Shared
// is the default: with skip a caller could avoid the limit by omitting a header.
type OnMissingKey string

// Shared counts all such requests under one key, deny denies them, and skip admits
// them without a limit.
const (
	OnMissingShared OnMissingKey = "shared"
	OnMissingDeny   OnMissingKey = "deny"
	OnMissingSkip   OnMissingKey = "skip"
)

// Fallback replaces code and message of the answer RATE_LIMITED. The HTTP status remains 429.
// Clients of older systems expect codes of their own, such as 888.
type Fallback struct {
	Code    int    `json:"code" yaml:"code"`
	Message string `json:"message" yaml:"message"`
}

// Rule is one named limit of the rules file.
type Rule struct {
	Name string `yaml:"name"`
	// Route that the rule applies to: a pattern such as "/orders" or
	// "GET /orders/:orderSn", or "*" for all. Without one it applies by name only: see Load.
	Route string `yaml:"route"`
	// By names the attributes that make the key: goods, user, ip (IPv6 by /64),
	// header:X, route, global. Up to four are joined.
	By []string `yaml:"by"`
	// Descriptor of the requests that Envoy asks about: key or key=value. Domain is Envoy's; empty
	// stands for every domain.
	Descriptor []string `yaml:"descriptor"`
	Domain     string   `yaml:"domain"`
	Change     `yaml:",inline"`
	// MaxWait and Interval are maxWaitMillis and intervalSeconds as "1s".
	MaxWait  *time.Duration `yaml:"maxWait"`
	Interval *time.Duration `yaml:"interval"`
	Scope    Scope          `yaml:"scope"`
	Message  string         `yaml:"message"`
	Fallback *Fallback      `yaml:"fallback"`

	OnMissingKey OnMissingKey `yaml:"onMissingKey"`
	OnError      OnError      `yaml:"onError"`
	// DryRun counts the requests that the rule would deny, and admits them.
	DryRun bool `yaml:"dryRun"`
	// Leases is how many permits a node may hold in advance for one key, 0 to 1000. From 2, it is
	// at least the permits of a millisecond, with which all nodes together hold a burst at most. A
	// lease is never more than a burst or the permits of a tenth of a second.
	Leases int64 `yaml:"leases"`
}

// Compiled is a rule that was checked, with its defaults and its params. Params computes with big
// numbers, so each rule is compiled once.
type Compiled struct {
	Rule
	params  ratelimit.Params
	entries []Entry
	seed    maphash.Seed
	hot     [64]atomic.Pointer[redisName] // by seed, see Compiled.RedisKey
}

// redisName is a key and its name in Redis for a kind of limits.
type redisName struct {
	key   string
	kind  ratelimit.Kind
	redis string
}

const (
	maxLeases  = 1000
	maxMessage = 500
	maxBy      = 4
)

var (
	ruleName   = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]{0,63}$`)
	routeName  = regexp.MustCompile(`^(\*|([A-Z]{3,7} )?/[!-~]{0,200})?$`)
	headerName = regexp.MustCompile(`^header:[A-Za-z0-9-]{1,64}$`)
)

// compile checks a rule and fills in its defaults. The error is a *FieldError.
func (r Rule) compile() (*Compiled, error) {
	r = r.withDefaults()
	if err := r.validate(); err != nil {
		return nil, err
	}
	if err := r.mergeDurations(); err != nil {
		return nil, err
	}
	if err := r.check(); err != nil {
		return nil, err
	}
	entries, err := r.entries()
	if err != nil {
		return nil, err
	}
	params, err := r.WithDefaults().Params()
	if err != nil {
		return nil, r.asWritten(err)
	}
	if r.Scope == ScopeGlobal {
		if err := params.CheckRedis(); err != nil {
			return nil, err
		}
	}
	return &Compiled{Rule: r, params: params, entries: entries, seed: maphash.MakeSeed()}, nil
}

func (r Rule) withDefaults() Rule {
	if len(r.By) == 0 {
		r.By = []string{"route"}
	}
	if r.Scope == "" {
		r.Scope = ScopeGlobal
	}
	if r.OnMissingKey == "" {
		r.OnMissingKey = OnMissingShared
	}
	if r.OnError == "" {
		r.OnError = OnErrorLocal
	}
	return r
}

// validate stops at the first problem, because lineOf names one line.
func (r Rule) validate() error {
	switch {
	case !ruleName.MatchString(r.Name):
		return ratelimit.BadField("name",
			"must be a letter and at most 63 letters, digits, _ or -, and is %q", r.Name)
	case !routeName.MatchString(r.Route):
		return ratelimit.BadField("route",
			"must be * or a path, with a method before it or not, and is %q", r.Route)
	case len(r.By) > maxBy:
		return ratelimit.BadField("by", "joins more than %d", maxBy)
	case r.Scope != ScopeGlobal && r.Scope != ScopeNode:
		return ratelimit.BadField("scope", "must be global or node, and is %q", r.Scope)
	case !slices.Contains([]OnMissingKey{OnMissingShared, OnMissingDeny, OnMissingSkip},
		r.OnMissingKey):
		return ratelimit.BadField("onMissingKey", "must be shared, deny or skip, and is %q",
			r.OnMissingKey)
	case !slices.Contains([]OnError{OnErrorClosed, OnErrorOpen, OnErrorLocal}, r.OnError):
		return ratelimit.BadField("onError", "must be closed, open or local, and is %q", r.OnError)
	case r.Leases < 0 || r.Leases > maxLeases:
		return ratelimit.BadField("leases", "must be 0 to %d", maxLeases)
	case len(r.Message) > maxMessage:
		return ratelimit.BadField("message", "is longer than %d bytes", maxMessage)
	case r.Fallback != nil && (r.Fallback.Code < 1 || r.Fallback.Code > 999_999):
		return ratelimit.BadField("fallback.code", "must be 1 to 999999")
	case r.Fallback != nil && len(r.Fallback.Message) > maxMessage:
		return ratelimit.BadField("fallback.message", "is longer than %d bytes", maxMessage)
	}
	return r.checkBy()
}

// checkBy checks the attributes of the key.
func (r Rule) checkBy() error {
	for i, by := range r.By {
		known := slices.Contains([]string{"goods", "user", "ip", "route", "global"}, by) ||
			headerName.MatchString(by)
		if !known || slices.Contains(r.By[:i], by) {
			return ratelimit.BadField("by",
				"must be of goods, user, ip, header:X, route, global, each once, and has %q", by)
		}
	}
	return nil
}

// mergeDurations stores maxWait as maxWaitMillis, and interval as intervalSeconds. The file takes
// durations as people write them; the API has numbers, which JSON can express.
func (r *Rule) mergeDurations() error {
	if r.MaxWait != nil {
		millis := r.MaxWait.Milliseconds()
		if r.MaxWaitMillis != nil && *r.MaxWaitMillis != millis {
			return ratelimit.BadField("maxWait", "and maxWaitMillis differ")
		}
		r.MaxWaitMillis = &millis
	}
	if r.Interval != nil {
		s := r.Interval.Seconds()
		if r.IntervalSeconds != nil && *r.IntervalSeconds != s {
			return ratelimit.BadField("interval", "and intervalSeconds differ")
		}
		r.IntervalSeconds = &s
	}
	return nil
}

// asWritten returns an error of the limit that names maxWait and interval where the file has them.
func (r Rule) asWritten(err error) error {
	field, ok := errors.AsType[*ratelimit.FieldError](err)
	switch {
	case ok && field.Field == "maxWaitMillis" && r.MaxWait != nil:
		return ratelimit.BadField("maxWait", "must be 0s to 24h")
	case ok && field.Field == "intervalSeconds" && r.Interval != nil:
		return ratelimit.BadField("interval", "must be 1ms to 24h, in whole milliseconds")
	}
	return err
}

// matches reports whether the rule applies to a route. HEAD does the work of GET, so it does not
// avoid the limits of GET.
func (r *Compiled) matches(method, route string) bool {
	return r.Route != "" && (r.Route == "*" || r.Route == route || r.Route == method+" "+route ||
		method == "HEAD" && r.Route == "GET "+route)
}

// label is the rule in an error message: its index and its name.
func label(i int, r Rule) string {
	return strings.TrimSuffix(fmt.Sprintf("rules[%d] %s", i, r.Name), " ")
}
