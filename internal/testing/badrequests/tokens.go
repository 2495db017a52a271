package badrequests

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"hash"
	"net/http"
	"strings"

	"flashsale.dev/seckill/internal/apierror"
)

// Forge makes a token with any header and claims, both JSON. It signs with the HMAC of a hash and a
// secret; with a nil hash the signature is empty.
func Forge(header, claims string, secret []byte, h func() hash.Hash) string {
	enc := base64.RawURLEncoding
	signed := enc.EncodeToString([]byte(header)) + "." + enc.EncodeToString([]byte(claims))
	if h == nil {
		return signed + "."
	}
	mac := hmac.New(h, secret)
	mac.Write([]byte(signed))
	return signed + "." + enc.EncodeToString(mac.Sum(nil))
}

const (
	hs256  = `{"alg":"HS256","typ":"JWT"}`
	hs512  = `{"alg":"HS512","typ":"JWT"}`
	noAlg  = `{"alg":"none","typ":"JWT"}`
	future = `4102444800` // the year 2100
)

// claims returns a token's payload. Its parameters are JSON; more has further members, each after a
// comma.
func claims(sub, role, exp, more string) string {
	return `{"sub":` + sub + `,"role":` + role + `,"exp":` + exp + more + `}`
}

// BadTokens returns Authorization headers that the API must refuse, by name. nil stands for no
// header.
func BadTokens(secret []byte) map[string][]string {
	good := claims(`"7"`, `"buyer"`, future, "")
	bearer := func(header, claims string, secret []byte, h func() hash.Hash) []string {
		return []string{"Bearer " + Forge(header, claims, secret, h)}
	}
	ours := func(claims string) []string { return bearer(hs256, claims, secret, sha256.New) }
	valid := ours(good)[0]
	return map[string][]string{
		"no token":               nil,
		"empty header":           {""},
		"no scheme":              {strings.TrimPrefix(valid, "Bearer ")},
		"another scheme":         {"Basic " + strings.TrimPrefix(valid, "Bearer ")},
		"two headers":            {valid, valid},
		"garbage":                {"Bearer garbage"},
		"three dots":             {valid + ".x"},
		"expired":                ours(claims(`"7"`, `"buyer"`, "1700000000", "")),
		"not yet":                ours(claims(`"7"`, `"buyer"`, future, `,"nbf":`+future)),
		"alg none":               bearer(noAlg, good, secret, nil),
		"alg none, but signed":   bearer(noAlg, good, secret, sha256.New),
		"HS512":                  bearer(hs512, good, secret, sha512.New),
		"HS512 said, HS256 done": bearer(hs512, good, secret, sha256.New),
		"another secret":         bearer(hs256, good, []byte(strings.Repeat("x", 40)), sha256.New),
		"empty secret":           bearer(hs256, good, nil, sha256.New),
		"signature cut":          {valid[:len(valid)-4]},
		"critical extension": bearer(`{"alg":"HS256","crit":["x"],"x":1}`, good, secret,
			sha256.New),
		"no exp":         ours(`{"sub":"7","role":"buyer"}`),
		"exp null":       ours(claims(`"7"`, `"buyer"`, "null", "")),
		"exp text":       ours(claims(`"7"`, `"buyer"`, `"tomorrow"`, "")),
		"no sub":         ours(`{"role":"buyer","exp":` + future + `}`),
		"sub a number":   ours(claims("7", `"buyer"`, future, "")),
		"sub empty":      ours(claims(`""`, `"buyer"`, future, "")),
		"sub a list":     ours(claims(`["7"]`, `"buyer"`, future, "")),
		"sub of 65":      ours(claims(`"`+strings.Repeat("s", 65)+`"`, `"buyer"`, future, "")),
		"sub with CRLF":  ours(claims(`"7\r\n"`, `"buyer"`, future, "")),
		"sub not ASCII":  ours(claims(`"é"`, `"buyer"`, future, "")),
		"sub SQL":        ours(claims(`"7 OR 1=1"`, `"buyer"`, future, "")),
		"role unknown":   ours(claims(`"7"`, `"admin"`, future, "")),
		"role missing":   ours(`{"sub":"7","exp":` + future + `}`),
		"role doubled":   ours(claims(`"7"`, `"buyer"`, future, `,"role":"operator"`)),
		"name with CRLF": ours(claims(`"7"`, `"buyer"`, future, `,"name":"a\r\nb"`)),
		"name of 121": ours(claims(`"7"`, `"buyer"`, future,
			`,"name":"`+strings.Repeat("n", 121)+`"`)),
		"name not UTF-8": ours(claims(`"7"`, `"buyer"`, future, ",\"name\":\"\xff\"")),
		"phone of 33": ours(claims(`"7"`, `"buyer"`, future,
			`,"phone_number":"`+strings.Repeat("1", 33)+`"`)),
		"phone a number": ours(claims(`"7"`, `"buyer"`, future, `,"phone_number":123`)),
	}
}

// everywhere names the bad tokens that every call gets. Only one call gets the others.
func everywhere() []string {
	return []string{"no token", "expired", "alg none", "HS512", "another secret"}
}

func (t *table) tokens() {
	all := BadTokens(t.Secret)
	for _, c := range append(t.calls(), t.otherCalls()...) {
		if c.who == "" {
			continue
		}
		for _, name := range everywhere() {
			t.withToken(name, c, all[name])
		}
		c.body = "{" // 401 comes before 400
		t.withToken("no token and a bad body", c, nil)
	}
	for name, values := range all {
		t.withToken(name, call{method: "GET", target: "/orders"}, values)
	}
}

// withToken adds a call that must get UNAUTHENTICATED for the values of its header Authorization;
// nil for no header.
func (t *table) withToken(what string, c call, values []string) {
	c.who = ""
	t.add(what, c, apierror.Unauthenticated, http.StatusUnauthorized, "")
	if values != nil {
		t.with("Authorization", values...)
	}
}
