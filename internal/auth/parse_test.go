package auth

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/testing/must"
)

// verifyByLibrary is verify with the library's general parser.
func (t *Tokens) verifyByLibrary(token string) (verified, error) {
	parser := jwt.NewParser(jwt.WithValidMethods([]string{"HS256"}), jwt.WithExpirationRequired(),
		jwt.WithStrictDecoding(), jwt.WithTimeFunc(t.now))
	var c claims
	parsed, err := parser.ParseWithClaims(token, &c,
		func(*jwt.Token) (any, error) { return t.secret, nil })
	if parsed != nil {
		if _, critical := parsed.Header["crit"]; critical {
			err = errClaims // the library ignores it; Verify checks it before the times
		}
	}
	if err != nil {
		return verified{}, refuse(err)
	}
	a, err := c.actor()
	if err != nil {
		return verified{}, refuse(err)
	}
	return verified{actor: a, expiresAt: c.ExpiresAt.Time}, nil
}

// signed encodes and signs a header and a payload of any text.
func signed(header, payload, key string) string {
	encode := base64.RawURLEncoding.EncodeToString
	text := encode([]byte(header)) + "." + encode([]byte(payload))
	mac, _ := jwt.SigningMethodHS256.Sign(text, []byte(key)) // fails only for a key of another type
	return text + "." + encode(mac)
}

// drawToken draws a token. Most are valid except for few details.
func drawToken(r *rapid.T, now int64) string {
	pick := func(label, usual string, others ...string) string {
		if rapid.IntRange(0, 15).Draw(r, label) < 15 {
			return usual
		}
		return rapid.SampledFrom(others).Draw(r, label)
	}
	header := pick("header", `{"alg":"HS256","typ":"JWT"}`, `{"typ":"JWT","alg":"HS256"}`,
		` {"alg" : "HS256", "kid":"1", "x":[{}]} `, `{"alg":"HS512"}`, `{"alg":"none"}`,
		`{"ALG":"HS256"}`, `{"alg":null}`, `{"alg":256}`, `{}`, `null`, `[]`, ``, `{`,
		`{"alg":"HS256","crit":["exp"]}`, `{"alg":"HS256","crit":null}`, `{"alg":"HS256"}x`)
	at := func(d int64) string { return fmt.Sprint(now + d) }
	member := func(name, usual string, others ...string) string {
		value := pick(name, usual, append(others, "", "null", "true", `"x"`, "{}", "-1")...)
		if value == "" {
			return ""
		}
		return fmt.Sprintf("%q:%s,", name, value)
	}
	later, earlier := at(60), at(-60)
	payload := "{" + member("sub", `"7"`, "7", `"07"`, `"0"`) +
		member("role", `"buyer"`, `"operator"`, `"root"`, `"Buyer"`) +
		member("exp", later, earlier, at(0), at(1), `"`+later+`"`, later+".5", "1e11", "1e400") +
		member("nbf", earlier, later, at(0), at(1), `"`+later+`"`) +
		member("iat", earlier, later, `"`+later+`"`) +
		member("name", `"Ann"`, "\"\xff\"", `"\ud800"`, `"a\nb"`) +
		member("phone_number", `"138"`, `"1\u00002"`) +
		member("iss", `"me"`) + member("aud", `["you"]`) + member("exp", "") + `"z":0}`
	payload = pick("payload", payload, "null", "", "[]", payload+" ", payload+"}", payload[1:])
	token := signed(header, payload, pick("key", string(secret), "another key"))
	i := rapid.IntRange(0, len(token)).Draw(r, "place")
	return pick("token", token, token+".", token+"=", token+"\n", token[:i], token[i:],
		token[:i]+"."+token[i:], token[:i]+"A"+token[i:], strings.Replace(token, ".", "", 1))
}

// TestTokensVerify_AgreesWithLibrary checks that Verify accepts what the library's general parser
// accepts, with the same actor, expiry and message.
func TestTokensVerify_AgreesWithLibrary(t *testing.T) {
	tokens, c := newTokens(t, 0)
	accepted := 0
	rapid.Check(t, func(r *rapid.T) {
		token := drawToken(r, c.Now().Unix())
		want, wantErr := tokens.verifyByLibrary(token)
		got, err := tokens.verify(token)
		require.Equal(r, want, got)
		if wantErr == nil {
			accepted++
			require.NoError(r, err)
			return
		}
		require.Error(r, err)
		require.Equal(r, wantErr.(*seckill.Error).Message, //nolint:errorlint // of this exact type
			err.(*seckill.Error).Message) //nolint:errorlint // as above
	})
	require.Positive(t, accepted, "no token was valid")
}

// TestTokensVerify_RefusesAmbiguousHeader checks that Verify is stricter than the library: a header
// with a repeated name or broken UTF-8 is refused.
func TestTokensVerify_RefusesAmbiguousHeader(t *testing.T) {
	tokens, c := newTokens(t, 0)
	payload := fmt.Sprintf(`{"sub":"7","role":"buyer","exp":%d}`, c.Now().Unix()+1)
	must.Get(tokens.Verify(signed(`{"alg":"HS256"}`, payload, string(secret))))(t)
	for _, header := range []string{
		`{"alg":"none","alg":"HS256"}`, "{\"alg\":\"HS256\",\"x\":\"\xff\"}",
	} {
		_, err := tokens.Verify(signed(header, payload, string(secret)))
		require.Equal(t, seckill.Unauthenticated, seckill.ReasonOf(err), header)
	}
}
