package auth

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"flashsale.dev/seckill/internal/apierror"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/testing/must"
	"flashsale.dev/seckill/internal/testing/property"
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
			err = errClaims // the library ignores it; verify checks it before the times
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
	return signedText(encode([]byte(header))+"."+encode([]byte(payload)), key)
}

// signedText adds the signature of a text to it.
func signedText(text, key string) string {
	mac, _ := jwt.SigningMethodHS256.Sign(text, []byte(key)) // fails only for a key of another type
	return text + "." + base64.RawURLEncoding.EncodeToString(mac)
}

// drawToken draws a token. About half of them are valid; most others have one defect.
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
		member("exp", later, earlier, at(0), at(1), `"`+later+`"`, later+".5", "1e11", "1e19",
			"9223372036854775807", "1e400") +
		member("nbf", earlier, later, at(0), at(1), `"`+later+`"`) +
		member("iat", earlier, later, `"`+later+`"`) +
		member("name", `"Ann"`, "\"\xff\"", `"\ud800"`, `"a\nb"`) +
		member("phone_number", `"138"`, `"1\u00002"`) +
		member("iss", `"me"`) + member("aud", `["you"]`) + member("exp", "") + `"z":0}`
	payload = pick("payload", payload, "null", "", "[]", payload+" ", payload+"}", payload[1:])
	token := signed(header, payload, pick("key", string(secret), "another key"))
	i := rapid.IntRange(0, len(token)).Draw(r, "place")
	return pick("token", token, token+".", token+"=", token[:i], token[i:],
		token[:i]+"."+token[i:], token[:i]+"A"+token[i:], strings.Replace(token, ".", "", 1))
}

// TestTokensVerify_AgreesWithLibrary checks that verify accepts and refuses the same tokens as the
// library's general parser with a check of crit. Ambiguous headers are an exception; see the next
// test.
func TestTokensVerify_AgreesWithLibrary(t *testing.T) {
	tokens, c := newTokens(t, 0)
	accepted := 0
	property.Check(t, func(r *rapid.T) {
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
		if errors.Is(err, errTypes) { // the library has one message for all signers
			err = refuse(jwt.ErrTokenMalformed)
		}
		require.Equal(r, wantErr.(*apierror.Error).Message, //nolint:errorlint // of this exact type
			err.(*apierror.Error).Message) //nolint:errorlint // as above
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
		require.Equal(t, apierror.Unauthenticated, apierror.ReasonOf(err), header)
	}
}

// TestTokensVerify_RefusesMalformedTokens checks that each of these defects alone refuses a token.
func TestTokensVerify_RefusesMalformedTokens(t *testing.T) {
	tokens, c := newTokens(t, 0)
	const header = `{"alg":"HS256"}`
	key, exp := string(secret), fmt.Sprintf(`,"exp":%d`, c.Now().Unix()+60)
	payload := func(exp string) string { return `{"sub":"7","role":"buyer"` + exp + `}` }
	good := signed(header, payload(exp), key)
	must.Get(tokens.Verify(good))(t)
	last, point := len(good)-1, strings.LastIndexByte(good, '.')
	bad := map[string]string{
		"no text": "", "a point": ".", "two points": "..",
		"padding": good + "=", "a point after": good + ".", "a point before": "." + good,
		"a cut signature": good[:last], "no signature": good[:point],
		"an empty signature": good[:point+1],
		"an unused bit":      good[:last] + string(good[last]+1), // the last two bits are unused
		"LF after":           good + "\n", "CR within": good[:last] + "\r" + good[last:],
		"one part, signed":    signedText(good[:strings.IndexByte(good, '.')], key),
		"three parts, signed": signedText(good, key),
	}
	for _, header := range []string{
		`{"alg":"HS512"}`, `{"alg":"none"}`, `{"ALG":"HS256"}`, `{"alg":null}`, `{}`, `null`, ``,
		`{"alg":"HS256","crit":["exp"]}`, `{"alg":"HS256","crit":null}`, `{"alg":"HS256"}x`,
	} {
		bad["header "+header] = signed(header, payload(exp), key)
	}
	for _, exp := range []string{
		``, `,"exp":-1`, `,"exp":1e400`, `,"exp":null`, `,"exp":"x"`, `,"exp":{}`, exp + exp,
	} {
		bad["claims "+exp] = signed(header, payload(exp), key)
	}
	until := claimsOf(seckill.Actor{ID: "7", Role: seckill.Buyer}, c.Now(),
		c.Now().Add(time.Minute))
	bad["signed with HS512"] = must.Get(
		jwt.NewWithClaims(jwt.SigningMethodHS512, until).SignedString(secret))(t)
	bad["unsigned"] = must.Get(jwt.NewWithClaims(jwt.SigningMethodNone, until).
		SignedString(jwt.UnsafeAllowNoneSignatureType))(t)
	for name, token := range bad {
		_, err := tokens.Verify(token)
		require.Equal(t, apierror.Unauthenticated, apierror.ReasonOf(err), name)
	}
}
