package rules

import (
	"crypto/sha256"
	"encoding/hex"
	"net/netip"
	"strconv"
	"strings"
)

// Attributes are what a request can be counted by. What is zero is missing.
type Attributes struct {
	// Goods that is known to exist: the caller checks, because an invented id
	// must not make a bucket of its own.
	Goods int64
	// User is the token's sub: a decimal int64 > 0.
	User int64
	IP   netip.Addr
	// Route is the pattern of the route, not the path that was asked for.
	Route string
	// Header looks a request header up; nil means there is none.
	Header func(name string) string
}

// maxKeyPart bounds what a header can put into a key; longer ones are hashed.
const maxKeyPart = 64

// key joins what the rule counts by, or says that something is missing.
func (r *Compiled) Key(a Attributes) (key string, ok bool) {
	if len(r.By) == 1 {
		return keyPart(r.By[0], a)
	}
	parts := make([]string, 0, len(r.By))
	for _, by := range r.By {
		part, ok := keyPart(by, a)
		if !ok {
			return "", false
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, ":"), true
}

func keyPart(by string, a Attributes) (string, bool) {
	switch by {
	case "goods":
		return strconv.FormatInt(a.Goods, 10), a.Goods > 0
	case "user":
		return strconv.FormatInt(a.User, 10), a.User > 0
	case "ip":
		return ipPart(a.IP)
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

// ipPart counts an IPv6 caller by its /64: one subscriber has all of that.
func ipPart(ip netip.Addr) (string, bool) {
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

// bounded keeps a part that is short and plain, and hashes any other: braces
// would move a hash tag, and colons would let two keys meet.
func bounded(value string) string {
	plain := len(value) <= maxKeyPart
	for i := 0; plain && i < len(value); i++ {
		c := value[i]
		plain = c == '-' || c == '_' || c == '.' || c == '/' ||
			('0' <= c && c <= '9') || ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z')
	}
	if plain {
		return value
	}
	sum := sha256.Sum256([]byte(value))
	return "#" + hex.EncodeToString(sum[:16])
}

// SharedKey is the bucket of all requests that lack what a rule counts by.
const SharedKey = "-"

// redisKey is where a limiter stands: with the goods' other keys where it is
// counted by goods first, so that one script may decide several, else spread.
func (r *Compiled) RedisKey(key string) string {
	if r.By[0] == "goods" && key != SharedKey {
		goods, _, _ := strings.Cut(key, ":")
		return "{" + goods + "}:ratelimit:" + r.Name + ":" + key
	}
	return "ratelimit:{" + r.Name + ":" + key + "}"
}
