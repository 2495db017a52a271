package rules

import (
	"crypto/sha256"
	"encoding/hex"
	"hash/maphash"
	"net/netip"
	"strconv"
	"strings"

	"flashsale.dev/seckill/internal/ratelimit"
)

// Attributes are the values that rules count requests by. A zero value is missing. Connection and
// token supply them where possible, because a caller can choose everything else.
type Attributes struct {
	// Goods is the id of a goods that exists. The caller checks that, because an
	// invented id must not create a limiter of its own.
	Goods int64
	// User is the token's sub.
	User string
	// IP returns the client's address; nil means that there is none.
	IP func() netip.Addr
	// Route is the route's pattern and not the path of the request.
	Route string
	// Header returns a request header or ""; nil means that there are none.
	Header func(name string) string
}

// maxKeyPart is the longest value, in bytes, that a key contains unhashed.
const maxKeyPart = 64

// Key joins the attributes that the rule counts by; ok is false if one is missing.
func (r *Compiled) Key(a *Attributes) (key string, ok bool) {
	var parts [maxBy]string // on the stack: every request makes a key
	for i, by := range r.By {
		if parts[i], ok = keyPart(by, a); !ok {
			return "", false
		}
	}
	return strings.Join(parts[:len(r.By)], ":"), true
}

// keyPart is the value of one attribute; false if it is missing. The rule's by was checked when the
// rule was read.
func keyPart(by string, a *Attributes) (string, bool) {
	switch by {
	case "goods":
		return strconv.FormatInt(a.Goods, 10), a.Goods > 0
	case "user":
		return bounded(a.User), a.User != ""
	case "ip":
		if a.IP == nil {
			return "", false
		}
		return IPKey(a.IP())
	case "route":
		return bounded(a.Route), a.Route != ""
	case "global":
		return "all", true
	}
	if a.Header == nil {
		return "", false
	}
	value := a.Header(strings.TrimPrefix(by, "header:"))
	return bounded(value), value != ""
}

// IPKey is the key of an address; ok is false for an invalid one. It counts IPv6 by /64, because
// one subscriber usually has a whole /64.
func IPKey(ip netip.Addr) (key string, ok bool) {
	ip = ip.Unmap().WithZone("")
	if !ip.IsValid() {
		return "", false
	}
	if ip.Is4() {
		return ip.String(), true
	}
	prefix, err := ip.Prefix(64)
	return prefix.String(), err == nil
}

// bounded hashes a value that is long or has special characters: braces would change
// the hash tag, and colons would make two keys equal.
func bounded(value string) string {
	if len(value) <= maxKeyPart && isPlain(value) {
		return value
	}
	return HashKey(value)
}

// HashKey returns a key of 33 bytes in place of a long one: the first half of its SHA-256.
func HashKey(key string) string {
	sum := sha256.Sum256([]byte(key))
	return "#" + hex.EncodeToString(sum[:16])
}

// isPlain reports whether a key contains the value unchanged. Every request asks.
func isPlain(value string) bool {
	for i := range len(value) {
		switch c := value[i]; c {
		case '-', '_', '.', '/', '|', '@', '+', '=', '~':
		default:
			if (c < 'a' || c > 'z') && (c < '0' || c > '9') && (c < 'A' || c > 'Z') {
				return false
			}
		}
	}
	return true
}

// SharedKey is the key of requests that lack an attribute of the rule.
const SharedKey = "-"

// Request makes req a request for one permit of a key's limiter, which is in Redis or, with scope
// node, in memory. It writes in place, because every decision makes a request, and a copy of one
// takes time.
func (r *Compiled) Request(req *ratelimit.Request, key string, params *ratelimit.Params) {
	req.Space, req.Key = r.Name, key
	if r.Scope == ScopeGlobal {
		req.Space, req.Key = "", r.RedisKey(key, params.Kind)
	}
	req.Params = *params
	req.N, req.Min, req.MaxWait = 1, 0, params.MaxWait()
}

// RedisKey is the limiter's key in Redis. Rules by goods share the hash tag of the goods, so that
// one script can decide several. Every other key has a tag of its own around the whole name. Those
// keys spread over the cluster, and a hot one moves with its slot. Each kind of limit that cannot
// read another one's state has a key of its own: while nodes differ in the algorithm, each would
// else drop what the others count. The names of hot keys are kept, so that most requests make none.
func (r *Compiled) RedisKey(key string, kind ratelimit.Kind) string {
	slot := &r.hot[maphash.String(r.seed, key)%uint64(len(r.hot))]
	if hot := slot.Load(); hot != nil && hot.key == key && hot.kind == kind {
		return hot.redis
	}
	hot := &redisName{strings.Clone(key), kind, r.redisKey(key, kind)}
	slot.Store(hot)
	return hot.redis
}

// RedisKeys are the limiter's keys in Redis for all kinds of limits.
func (r *Compiled) RedisKeys(key string) []string {
	kinds := []ratelimit.Kind{
		ratelimit.KindBucket, ratelimit.KindFixed, ratelimit.KindSliding, ratelimit.KindLog,
	}
	keys := make([]string, len(kinds))
	for i, kind := range kinds {
		keys[i] = r.redisKey(key, kind)
	}
	return keys
}

func (r *Compiled) redisKey(key string, kind ratelimit.Kind) string {
	space := "ratelimit"
	if !kind.Accumulates() {
		space += "-" + string(kind)
	}
	if r.By[0] == "goods" && key != SharedKey {
		goods, _, _ := strings.Cut(key, ":")
		return "{" + goods + "}:" + space + ":" + r.Name + ":" + key
	}
	return space + ":{" + r.Name + ":" + key + "}"
}
