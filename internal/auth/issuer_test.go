package auth_test

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/apierror"
	"flashsale.dev/seckill/internal/auth"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/testing/must"
	"flashsale.dev/seckill/internal/testing/testclock"
	"flashsale.dev/seckill/internal/userid"
)

const audience = "flash-sale"

// issuerFixture is an issuer with its keys, and a Tokens that accepts it.
type issuerFixture struct {
	t       *testing.T
	server  *httptest.Server
	down    atomic.Bool
	fetches atomic.Int64 // of the keys
	tokens  *auth.Tokens

	clock *testclock.Clock

	headers map[jose.HeaderKey]any // of tokens, beside the usual ones

	mu   sync.Mutex
	keys []jose.JSONWebKey // with private keys; guarded by mu
	body func() any        // replaces the answer with the keys; nil: it does not; guarded by mu
}

// newIssuerFixture starts an issuer with one key of each algorithm, and waits for its discovery.
func newIssuerFixture(t *testing.T, roleClaim string) *issuerFixture {
	t.Helper()
	f := &issuerFixture{t: t, clock: testclock.New()}
	f.keys = []jose.JSONWebKey{
		newKey(t, "r", jose.RS256), newKey(t, "e", jose.ES256), newKey(t, "d", jose.EdDSA),
	}
	f.serve()
	f.use(roleClaim)
	require.Eventually(t, func() bool {
		_, err := f.tokens.Verify(f.sign("r", nil))
		return err == nil
	}, time.Minute, 5*time.Millisecond)
	return f
}

func newKey(t *testing.T, id string, algorithm jose.SignatureAlgorithm) jose.JSONWebKey {
	t.Helper()
	var key crypto.Signer
	switch algorithm {
	case jose.RS256:
		key = must.Get(rsa.GenerateKey(rand.Reader, 2048))(t)
	case jose.ES256:
		key = must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	default:
		_, private, err := ed25519.GenerateKey(rand.Reader)
		require.NoError(t, err)
		key = private
	}
	return jose.JSONWebKey{Key: key, KeyID: id, Algorithm: string(algorithm), Use: "sig"}
}

// serve starts the issuer's server.
func (f *issuerFixture) serve() {
	f.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if f.down.Load() {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		// Bearer tokens need no endpoints for signing in.
		var body any = map[string]string{
			"issuer": f.server.URL, "jwks_uri": f.server.URL + "/keys",
		}
		if r.URL.Path == "/keys" {
			f.fetches.Add(1)
			body = f.answer()
		}
		_ = json.NewEncoder(w).Encode(body)
	}))
	f.t.Cleanup(f.server.Close)
}

// answer is what the issuer answers to a request for its keys.
func (f *issuerFixture) answer() any {
	f.mu.Lock()
	body := f.body
	f.mu.Unlock()
	if body != nil {
		return body()
	}
	return f.public()
}

// answerWith replaces the answer with the keys.
func (f *issuerFixture) answerWith(body func() any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.body = body
}

func (f *issuerFixture) public() (set jose.JSONWebKeySet) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, k := range f.keys {
		set.Keys = append(set.Keys, k.Public())
	}
	return set
}

// use runs an Issuer until the test ends.
func (f *issuerFixture) use(roleClaim string) {
	issuer := must.Get(auth.NewIssuer(auth.IssuerOptions{
		URL: f.server.URL, Audience: audience, RoleClaim: roleClaim, Client: f.server.Client(),
		Now: f.clock.Now, Log: slog.New(slog.DiscardHandler),
	}))(f.t)
	f.tokens = must.Get(auth.NewTokens(auth.Options{
		Secrets: [][]byte{[]byte(strings.Repeat("s", 32))}, Issuer: issuer, CacheSize: 100,
		Now: f.clock.Now,
	}))(f.t)
	var ended sync.WaitGroup
	ended.Go(func() { _ = issuer.Run(f.t.Context()) })
	f.t.Cleanup(ended.Wait)
}

// encode encodes one part of a token.
func encode(part string) string { return base64.RawURLEncoding.EncodeToString([]byte(part)) }

// replace sets the keys.
func (f *issuerFixture) replace(keys ...jose.JSONWebKey) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.keys = keys
}

// sign signs good claims, overridden by others, with the key of an id. nil removes a claim.
func (f *issuerFixture) sign(id string, change map[string]any) string {
	f.mu.Lock()
	key := f.keys[0]
	for _, k := range f.keys {
		if k.KeyID == id {
			key = k
		}
	}
	f.mu.Unlock()
	return f.signWith(key, change)
}

func (f *issuerFixture) signWith(key jose.JSONWebKey, change map[string]any) string {
	f.t.Helper()
	claims := map[string]any{
		"iss": f.server.URL, "aud": audience, "sub": "auth0|5f7c", "name": "Ada",
		"exp": f.clock.Now().Add(time.Hour).Unix(),
	}
	maps.Copy(claims, change)
	maps.DeleteFunc(claims, func(_ string, v any) bool { return v == nil })
	signer := must.Get(jose.NewSigner(jose.SigningKey{
		Algorithm: jose.SignatureAlgorithm(key.Algorithm), Key: key,
	}, &jose.SignerOptions{ExtraHeaders: f.headers}))(f.t)
	signed := must.Get(signer.Sign(must.Get(json.Marshal(claims))(f.t)))(f.t)
	return must.Get(signed.CompactSerialize())(f.t)
}

// refused checks that a token is refused with a reason.
func (f *issuerFixture) refused(token string, reason apierror.Reason, name string) {
	f.t.Helper()
	_, err := f.tokens.Verify(token)
	require.Equal(f.t, reason, apierror.ReasonOf(err), name)
	_, err = f.tokens.Verify(token)
	require.Equal(f.t, reason, apierror.ReasonOf(err), "%s, asked again", name)
}

func TestIssuer_AcceptsEachAlgorithm(t *testing.T) {
	t.Parallel()
	f := newIssuerFixture(t, "role")
	for _, id := range []string{"r", "e", "d"} {
		got := must.Get(f.tokens.Verify(f.sign(id, map[string]any{
			"aud": []string{"other", audience}, "role": "merchant", "phone_number": "+86 1",
			"email": "ada@example.org",
		})))(t)
		require.Equal(t, seckill.Actor{
			ID: "auth0|5f7c", Role: seckill.Merchant, Name: "Ada", Phone: "+86 1",
			Email: "ada@example.org",
		}, got)
	}
	own := must.Get(f.tokens.Sign(seckill.Actor{ID: "7", Role: seckill.Operator}, time.Hour))(t)
	require.Equal(t, seckill.Operator, must.Get(f.tokens.Verify(own))(t).Role, "HS256 stays")
}

func TestIssuer_RefusesBadTokens(t *testing.T) {
	t.Parallel()
	f := newIssuerFixture(t, "role")
	now := f.clock.Now()
	for name, change := range map[string]map[string]any{
		"wrong issuer":       {"iss": "https://other.example"},
		"no issuer":          {"iss": nil},
		"wrong audience":     {"aud": "other"},
		"no audience":        {"aud": nil},
		"expired":            {"exp": now.Add(-2 * time.Minute).Unix()},
		"no expiry":          {"exp": nil},
		"not yet valid":      {"nbf": now.Add(2 * time.Minute).Unix()},
		"too long a subject": {"sub": strings.Repeat("x", userid.MaxLen+1)},
		"a space in it":      {"sub": "a b"},
		"no subject":         {"sub": nil},
		"a number":           {"sub": 7},
		"too long a name":    {"name": strings.Repeat("x", auth.MaxName+1)},
	} {
		f.refused(f.sign("r", change), apierror.Unauthenticated, name)
	}
	for name, change := range map[string]map[string]any{
		"just expired":     {"exp": now.Add(-30 * time.Second).Unix()},
		"almost valid":     {"nbf": now.Add(30 * time.Second).Unix()},
		"longest subject":  {"sub": strings.Repeat("x", userid.MaxLen)},
		"without any name": {"name": nil},
	} {
		_, err := f.tokens.Verify(f.sign("r", change))
		require.NoError(t, err, name)
	}
}

// TestIssuer_RefusalNamesTheCause checks that a caller whose token is genuine learns what is wrong.
func TestIssuer_RefusalNamesTheCause(t *testing.T) {
	t.Parallel()
	f := newIssuerFixture(t, "role")
	now := f.clock.Now()
	for message, change := range map[string]map[string]any{
		"the token has expired": {"exp": now.Add(-3 * time.Minute).Unix()},
		"the token is not valid yet; compare the clocks": {
			"nbf": now.Add(3 * time.Minute).Unix(),
		},
		"the token has no exp":                   {"exp": nil},
		"the token's iss is not the issuer":      {"iss": "https://other.example"},
		"the token's aud does not name this API": {"aud": []string{"account"}},
		"the token's sub, role, name or phone_number is missing or out of its bounds": {
			"phone_number": strings.Repeat("1", 33),
		},
	} {
		_, err := f.tokens.Verify(f.sign("r", change))
		require.ErrorContains(t, err, message)
	}
}

// TestIssuer_RefusesForgedSignatures has the known attacks on libraries of JWTs.
func TestIssuer_RefusesForgedSignatures(t *testing.T) {
	t.Parallel()
	f := newIssuerFixture(t, "role")
	good := f.sign("r", nil)
	parts := strings.Split(good, ".")
	rsaKey := f.public().Keys[0]
	der := must.Get(x509.MarshalPKIXPublicKey(rsaKey.Key))(t)
	public := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	weak := jose.JSONWebKey{
		Key: must.Get(rsa.GenerateKey(rand.Reader, 1024))(t), KeyID: "w", Algorithm: "RS256",
	}
	for name, token := range map[string]string{
		"alg none":                encode(`{"alg":"none"}`) + "." + parts[1] + ".",
		"alg None":                encode(`{"alg":"None"}`) + "." + parts[1] + ".",
		"no signature":            parts[0] + "." + parts[1] + ".",
		"another's signature":     f.signWith(newKey(t, "r", jose.RS256), nil),
		"another algorithm's key": f.signWith(newKey(t, "r", jose.ES256), nil),
		"unknown key":             f.signWith(newKey(t, "x", jose.RS256), nil),
		"a weak key":              f.signWith(weak, nil),
		"other claims": parts[0] + "." +
			encode(`{"sub":"1","role":"operator"}`) + "." + parts[2],
		"HS256 with the public key": f.signWith(jose.JSONWebKey{
			Key: public, KeyID: "r", Algorithm: "HS256",
		}, nil),
		"PS256": f.signWith(jose.JSONWebKey{
			Key: must.Get(rsa.GenerateKey(rand.Reader, 2048))(t), KeyID: "r", Algorithm: "PS256",
		}, nil),
		"a line feed": good + "\n",
	} {
		f.refused(token, apierror.Unauthenticated, name)
	}
}

// TestIssuer_RefusesCriticalExtensions checks RFC 7515, 4.1.11, as of our own tokens.
func TestIssuer_RefusesCriticalExtensions(t *testing.T) {
	t.Parallel()
	f := newIssuerFixture(t, "role")
	f.mu.Lock()
	key := f.keys[0]
	f.mu.Unlock()
	for _, names := range [][]string{{"exp"}, {"https://x.example/u"}, {}, {"b64"}} {
		f.headers = map[jose.HeaderKey]any{"crit": names}
		f.refused(f.signWith(key, nil), apierror.Unauthenticated, strings.Join(names, " "))
	}
	f.headers = map[jose.HeaderKey]any{"x": "y"}
	_, err := f.tokens.Verify(f.signWith(key, nil))
	require.NoError(t, err, "a header that is unknown and not critical")
}

func TestIssuer_TakesTheMostPowerfulRoleOfItsClaim(t *testing.T) {
	t.Parallel()
	const uri = "https://shop.example/roles"
	for _, c := range []struct {
		claim string
		value map[string]any
		want  seckill.Role
	}{
		{"role", nil, seckill.Buyer},
		{"role", map[string]any{"role": "merchant"}, seckill.Merchant},
		{"role", map[string]any{"role": "root"}, seckill.Buyer},
		{"role", map[string]any{"role": 7}, seckill.Buyer},
		{"role", map[string]any{"role": []string{"x", "merchant", "operator"}}, seckill.Operator},
		{"a.b", map[string]any{"a": map[string]any{"b": []string{"merchant"}}}, seckill.Merchant},
		{"a.b", map[string]any{"a": "merchant"}, seckill.Buyer},
		{uri, map[string]any{uri: []string{"operator"}}, seckill.Operator},
	} {
		f := newIssuerFixture(t, c.claim)
		got := must.Get(f.tokens.Verify(f.sign("e", c.value)))(t)
		require.Equal(t, c.want, got.Role, "%s in %v", c.claim, c.value)
	}
}

// TestIssuer_FollowsRotation also checks that a withdrawn key ends cached results.
func TestIssuer_FollowsRotation(t *testing.T) {
	t.Parallel()
	f := newIssuerFixture(t, "role")
	old := f.sign("r", nil)
	next := newKey(t, "next", jose.ES256)
	f.replace(append(f.keys, next)...)
	f.clock.Add(10 * time.Second)
	_, err := f.tokens.Verify(f.sign("next", nil))
	require.NoError(t, err, "an unknown key is fetched at once")
	_, err = f.tokens.Verify(old)
	require.NoError(t, err, "both are published")

	last := newKey(t, "last", jose.EdDSA)
	f.replace(last)
	f.clock.Add(10 * time.Second)
	_, err = f.tokens.Verify(f.sign("last", nil))
	require.NoError(t, err)
	f.refused(old, apierror.Unauthenticated, "its key is withdrawn")

	f.down.Store(true)
	f.clock.Add(10 * time.Second)
	f.refused(f.signWith(next, nil), apierror.Unauthenticated, "the issuer is down")
	_, err = f.tokens.Verify(f.sign("last", nil))
	require.NoError(t, err, "the last keys verify while the issuer is down")
}

// TestIssuer_IgnoresUnknownKeys checks that keys of a type, a curve or a form that is unknown here
// do not hide the others (RFC 7517, 5).
func TestIssuer_IgnoresUnknownKeys(t *testing.T) {
	t.Parallel()
	f := newIssuerFixture(t, "role")
	next := newKey(t, "next", jose.ES256)
	f.replace(next)
	f.answerWith(func() any {
		keys := []any{
			map[string]any{"kty": "OKP", "crv": "X25519", "kid": "x", "use": "enc", "x": "AA"},
			map[string]any{"kty": "EC", "crv": "secp256k1", "kid": "k", "x": "AA", "y": "AA"},
			map[string]any{"kty": "new", "kid": "next"},
			map[string]any{"kid": "next"},
			7,
		}
		for _, k := range f.public().Keys {
			keys = append(keys, k)
		}
		return map[string]any{"keys": keys}
	})
	f.clock.Add(10 * time.Second)
	_, err := f.tokens.Verify(f.sign("next", nil))
	require.NoError(t, err)
}

// TestIssuer_KeepsKeysAfterAnswerWithoutKeys checks the answers of a broken proxy with status 200.
func TestIssuer_KeepsKeysAfterAnswerWithoutKeys(t *testing.T) {
	t.Parallel()
	f := newIssuerFixture(t, "role")
	unknown := f.signWith(newKey(t, "unknown", jose.ES256), nil)
	for _, body := range []any{map[string]any{}, map[string]any{"error": "down"}, nil, "down", 7} {
		f.answerWith(func() any { return body })
		f.clock.Add(10 * time.Second)
		before := f.fetches.Load()
		f.refused(unknown, apierror.Unauthenticated, "an unknown key")
		require.Equal(t, before+1, f.fetches.Load())
		_, err := f.tokens.Verify(f.sign("r", nil))
		require.NoError(t, err, "%v", body)
	}
}

func TestIssuer_ForgedKeysCauseOneFetch(t *testing.T) {
	t.Parallel()
	f := newIssuerFixture(t, "role")
	f.clock.Add(10 * time.Second)
	before, key := f.fetches.Load(), newKey(t, "", jose.ES256)
	var callers sync.WaitGroup
	for n := range 256 {
		forged := key
		forged.KeyID = fmt.Sprint("forged", n)
		token := f.signWith(forged, nil)
		callers.Go(func() { _, _ = f.tokens.Verify(token) })
	}
	callers.Wait()
	require.Equal(t, int64(1), f.fetches.Load()-before, "256 callers, one fetch")
}

// TestIssuer_DownAtStartIsUnavailableUntilItAnswers checks that nothing is accepted before the
// discovery, and that the issuer is found once it answers.
func TestIssuer_DownAtStartIsUnavailableUntilItAnswers(t *testing.T) {
	t.Parallel()
	f := &issuerFixture{
		t: t, clock: testclock.New(), keys: []jose.JSONWebKey{newKey(t, "e", jose.ES256)},
	}
	f.down.Store(true)
	f.serve()
	f.use("role")
	token := f.sign("e", nil)
	f.refused(token, apierror.Unavailable, "no discovery yet")
	f.refused(encode(`{"alg":"none"}`)+"."+strings.Split(token, ".")[1]+".",
		apierror.Unauthenticated, "alg none")
	f.down.Store(false)
	require.Eventually(t, func() bool {
		_, err := f.tokens.Verify(token)
		return err == nil
	}, time.Minute, 10*time.Millisecond)
}

// TestBeginSignIn_RequestsListedScopes checks that a sign-in asks for phone and email only if the
// provider lists them: some refuse other scopes, and Microsoft Entra ID has no phone.
func TestBeginSignIn_RequestsListedScopes(t *testing.T) {
	t.Parallel()
	for want, listed := range map[string][]string{
		"openid profile":             nil,
		"openid profile email":       {"openid", "profile", "email", "offline_access"},
		"openid profile phone email": {"email", "phone", "openid", "profile"},
	} {
		_, _, at := beginSignIn(t, auth.IssuerOptions{}, listed, nil)
		require.Equal(t, want, must.Get(url.Parse(at))(t).Query().Get("scope"))
	}
}

// beginSignIn runs an issuer of a new provider until the test ends, and begins a sign-in. The
// provider lists scopes; exchange answers its token endpoint.
func beginSignIn(
	t *testing.T, o auth.IssuerOptions, scopes []string, exchange http.HandlerFunc,
) (issuer *auth.Issuer, begun auth.SignIn, address string) {
	t.Helper()
	f := &issuerFixture{t: t, keys: []jose.JSONWebKey{newKey(t, "e", jose.ES256)}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		own := "http://" + r.Host
		switch {
		case r.Method == http.MethodPost:
			exchange(w, r)
		case r.URL.Path == "/keys":
			_ = json.NewEncoder(w).Encode(f.public())
		default:
			_ = json.NewEncoder(w).Encode(map[string]any{
				"issuer": own, "jwks_uri": own + "/keys", "scopes_supported": scopes,
				"authorization_endpoint": own, "token_endpoint": own,
			})
		}
	}))
	t.Cleanup(server.Close)
	o.URL, o.Audience, o.Client, o.Now = server.URL, audience, server.Client(), time.Now
	o.RedirectURL, o.Log = "https://shop.example/callback", slog.New(slog.DiscardHandler)
	issuer = must.Get(auth.NewIssuer(o))(t)
	var ended sync.WaitGroup
	ended.Go(func() { _ = issuer.Run(t.Context()) })
	t.Cleanup(ended.Wait)
	require.Eventually(t, func() (ok bool) {
		var err error
		begun, address, err = issuer.BeginSignIn()
		return err == nil
	}, time.Minute, 5*time.Millisecond)
	return issuer, begun, address
}

// TestIssuer_ClientNamesItselfInOneRequest checks what the token endpoint gets. A public client has
// its id in the body (RFC 6749, 4.1.3): a provider may refuse an empty password, and some end the
// code with it.
func TestIssuer_ClientNamesItselfInOneRequest(t *testing.T) {
	t.Parallel()
	for _, secret := range []string{"", "s"} {
		asked := make(chan *http.Request, 9)
		pages := auth.IssuerOptions{ClientID: "pages", ClientSecret: secret}
		issuer, begun, _ := beginSignIn(t, pages, nil, func(w http.ResponseWriter, r *http.Request) {
			_ = r.ParseForm()
			asked <- r
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(map[string]any{"access_token": "a"})
		})
		_, err := issuer.FinishSignIn(t.Context(), begun,
			auth.SignInReply{State: begun.State, Code: "c"})
		require.Error(t, err, "the answer has no ID token")
		require.Len(t, asked, 1)
		r := <-asked
		id, password, basic := r.BasicAuth()
		require.Equal(t, secret != "", basic)
		require.Equal(t, secret, password)
		require.Equal(t, "pages", id+r.PostForm.Get("client_id"))
	}
}

// TestFinishSignIn_IssuerIsDown checks that a token endpoint without an answer, or with a 5xx, is
// UNAVAILABLE, and that a refused code is not.
func TestFinishSignIn_IssuerIsDown(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]apierror.Reason{
		0: apierror.Unavailable, 503: apierror.Unavailable, 400: "",
	} {
		pages := auth.IssuerOptions{ClientID: "pages"}
		answer := func(w http.ResponseWriter, _ *http.Request) {
			if status == 0 {
				panic(http.ErrAbortHandler)
			}
			w.WriteHeader(status)
		}
		issuer, begun, _ := beginSignIn(t, pages, nil, answer)
		_, err := issuer.FinishSignIn(t.Context(), begun,
			auth.SignInReply{State: begun.State, Code: "c"})
		require.Error(t, err)
		require.Equal(t, want, apierror.ReasonOf(err), "%d: %v", status, err)
	}
}

func TestNewIssuer_RefusesPlainHTTP(t *testing.T) {
	t.Parallel()
	for _, url := range []string{
		"http://id.example", "id.example", "ftp://id.example", "https://",
	} {
		_, err := auth.NewIssuer(auth.IssuerOptions{
			URL: url, Audience: audience, Client: http.DefaultClient,
		})
		require.ErrorIs(t, err, auth.ErrIssuer, url)
		require.ErrorContains(t, err, url)
	}
}

// roundTrip answers requests without a network.
type roundTrip func(*http.Request) *http.Response

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r), nil }

// TestIssuer_RefusesRedirectToPlainHTTP checks that keys do not come over plain http, where a third
// party could replace them.
func TestIssuer_RefusesRedirectToPlainHTTP(t *testing.T) {
	t.Parallel()
	for address, good := range map[string]bool{
		"http://keys.example/keys": false, "https://keys.example/keys": true,
	} {
		answers := http.NewServeMux()
		answers.HandleFunc("/.well-known/", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w,
				`{"issuer":"https://id.example","jwks_uri":"https://id.example/old"}`)
		})
		answers.Handle("/old", http.RedirectHandler(address, http.StatusFound))
		answers.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"keys":[]}`)
		})
		found := make(chan bool, 1)
		issuer := must.Get(auth.NewIssuer(auth.IssuerOptions{
			URL: "https://id.example", Audience: audience, Now: time.Now,
			Client: &http.Client{Transport: roundTrip(func(r *http.Request) *http.Response {
				w := httptest.NewRecorder()
				answers.ServeHTTP(w, r)
				return w.Result()
			})},
			Log: slog.New(slog.DiscardHandler), CountFetch: func(ok bool) { found <- ok },
		}))(t)
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { _ = issuer.Run(ctx) })
		require.Equal(t, good, <-found, address)
		cancel()
		running.Wait()
	}
}

func TestTokens_FirstSecretSignsAndAllVerify(t *testing.T) {
	t.Parallel()
	a, b := []byte(strings.Repeat("a", 32)), []byte(strings.Repeat("b", 32))
	ring := func(secrets ...[]byte) *auth.Tokens {
		return must.Get(auth.NewTokens(auth.Options{Secrets: secrets, Now: time.Now}))(t)
	}
	who := seckill.Actor{ID: "7", Role: seckill.Buyer}
	token := must.Get(ring(b, a).Sign(who, time.Hour))(t)
	for _, tokens := range []*auth.Tokens{ring(b), ring(a, b), ring(b, a)} {
		require.Equal(t, who, must.Get(tokens.Verify(token))(t))
	}
	_, err := ring(a).Verify(token)
	require.Equal(t, apierror.Unauthenticated, apierror.ReasonOf(err), "the first secret signs")
	_, err = auth.NewTokens(auth.Options{Secrets: [][]byte{a, []byte("short")}, Now: time.Now})
	require.ErrorIs(t, err, auth.ErrShortSecret)
}
