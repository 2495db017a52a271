package httpapi_test

import (
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/auth"
	"flashsale.dev/seckill/internal/httpapi"
	"flashsale.dev/seckill/internal/testing/must"
	"flashsale.dev/seckill/internal/testing/servers"
)

// signInFixture is an API whose users sign in at a running OpenID Connect provider.
type signInFixture struct {
	*fixture
	provider *servers.OIDCServer
	base     string
	down     atomic.Bool // no call reaches the provider
}

// RoundTrip makes the calls of the API to its provider.
func (h *signInFixture) RoundTrip(r *http.Request) (*http.Response, error) {
	if h.down.Load() {
		return nil, net.ErrClosed
	}
	return http.DefaultTransport.RoundTrip(r)
}

func newSignInFixture(t *testing.T, session time.Duration) *signInFixture {
	t.Helper()
	h := &signInFixture{fixture: newFixture(t), provider: servers.OIDC(t)}
	port := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	h.base = "http://" + port.Addr().String()
	h.provider.SetRedirect(t, h.base+httpapi.SignInCallback)
	issuer := must.Get(auth.NewIssuer(auth.IssuerOptions{
		URL: h.provider.Issuer(), Audience: servers.OIDCClient, RoleClaim: "realm.roles",
		RedirectURL: h.base + httpapi.SignInCallback, Client: &http.Client{Transport: h},
		Now: time.Now, Log: slog.New(slog.DiscardHandler),
	}))(t)
	var ended sync.WaitGroup
	ended.Go(func() { _ = issuer.Run(t.Context()) })
	t.Cleanup(ended.Wait)
	deps := h.Deps
	deps.Issuer, deps.IssuerSession = issuer, session
	deps.Tokens = must.Get(auth.NewTokens(auth.Options{
		Secrets: [][]byte{secret}, Issuer: issuer, CacheSize: 100, Now: time.Now,
	}))(t)
	srv := httpapi.Server(httpapi.New(deps), "", deps.Log)
	ended.Go(func() { _ = srv.Serve(port) })
	t.Cleanup(func() { require.NoError(t, srv.Close()) })
	require.Eventually(t, func() bool {
		_, _, err := issuer.BeginSignIn()
		return err == nil
	}, time.Minute, 10*time.Millisecond)
	return h
}

// browser keeps cookies and follows redirects.
func (h *signInFixture) browser() *http.Client {
	return &http.Client{Jar: must.Get(cookiejar.New(nil))(h.t)}
}

// open requests an address and returns the address at the end of the redirects, the status and the
// body.
func (h *signInFixture) open(b *http.Client, method, address string, form url.Values) (
	at string, status int, body string,
) {
	h.t.Helper()
	if strings.HasPrefix(address, "/") {
		address = h.base + address
	}
	req := must.Get(http.NewRequestWithContext(h.t.Context(), method, address,
		strings.NewReader(form.Encode())))(h.t)
	if form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	res := must.Get(b.Do(req))(h.t)
	defer res.Body.Close()
	text := must.Get(io.ReadAll(res.Body))(h.t)
	return strings.TrimPrefix(res.Request.URL.String(), h.base), res.StatusCode, string(text)
}

// signIn opens a page, chooses a user at the provider and returns where the browser arrives.
func (h *signInFixture) signIn(b *http.Client, page, user string) (at string, status int) {
	h.t.Helper()
	form, _, _ := h.open(b, "GET", page, nil)
	require.True(h.t, strings.HasPrefix(form, h.provider.Issuer()+"/authorize?"), form)
	at, status, _ = h.open(b, "POST", form, url.Values{"user": {user}})
	return at, status
}

func TestSignIn_BuyerAndMerchantAtAProvider(t *testing.T) {
	t.Parallel()
	h := newSignInFixture(t, time.Hour)
	merchant, buyer := h.browser(), h.browser()
	at, status := h.signIn(merchant, "/console", "shop")
	require.Equal(t, "/console", at, "the page that the merchant opened")
	require.Equal(t, http.StatusOK, status)
	_, status, _ = h.open(merchant, "GET", "/admin/sales", nil)
	require.Equal(t, http.StatusOK, status)

	_, _, body := h.open(buyer, "GET", "/session", nil)
	require.Contains(t, body, `href="/session?to=/session"`)
	require.NotContains(t, body, "<textarea", "no token to paste")
	at, _ = h.signIn(buyer, "/session?to=/session", "ada")
	require.Equal(t, "/", at)
	_, status, _ = h.open(buyer, "GET", "/orders", nil)
	require.Equal(t, http.StatusOK, status)
	_, status, body = h.open(buyer, "GET", "/console", nil)
	require.Equal(t, http.StatusForbidden, status)
	require.Contains(t, body, "Ada Lovelace")

	_, status, _ = h.open(merchant, "DELETE", "/session", nil)
	require.Equal(t, http.StatusOK, status)
	at, _ = h.signIn(merchant, "/console/sales/7", "shop")
	require.Equal(t, "/console/sales/7", at)
	at, _ = h.signIn(h.browser(), "/session?to="+url.QueryEscape("/s/7?quantity=3"), "shop")
	require.Equal(t, "/s/7?quantity=3", at)
}

func TestSignIn_SessionEnds(t *testing.T) {
	t.Parallel()
	h := newSignInFixture(t, 2*time.Second)
	b := h.browser()
	h.signIn(b, "/console/operations", "shop")
	require.Eventually(t, func() bool {
		at, _, _ := h.open(b, "GET", "/console/operations", nil)
		return strings.HasPrefix(at, h.provider.Issuer())
	}, time.Minute, 100*time.Millisecond)
	at, _ := h.signIn(b, "/console/operations", "shop")
	require.Equal(t, "/console/operations", at)
}

// TestSignIn_RefusesForgedReplies plays replies that this browser has not asked for.
func TestSignIn_RefusesForgedReplies(t *testing.T) {
	t.Parallel()
	h := newSignInFixture(t, time.Hour)
	// reply begins a sign-in and returns the address that the provider sends the browser to.
	reply := func(b *http.Client) *url.URL {
		form, _, _ := h.open(b, "GET", "/session?to=/console", nil)
		b.CheckRedirect = func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		}
		defer func() { b.CheckRedirect = nil }()
		res := must.Get(b.PostForm(form, url.Values{"user": {"shop"}}))(t)
		defer res.Body.Close()
		return must.Get(res.Location())(t)
	}
	change := func(name, value string) func(*url.URL) {
		return func(u *url.URL) {
			query := u.Query()
			query.Set(name, value)
			u.RawQuery = query.Encode()
		}
	}
	for name, forge := range map[string]func(*url.URL){
		"another state":  change("state", "x"),
		"no state":       change("state", ""),
		"another code":   change("code", "x"),
		"another issuer": change("iss", "https://evil.example"),
		"refused":        change("error", "access_denied"),
	} {
		b := h.browser()
		u := reply(b)
		forge(u)
		_, status, _ := h.open(b, "GET", u.String(), nil)
		require.Equal(t, http.StatusBadRequest, status, name)
		_, status, _ = h.open(b, "GET", "/orders", nil)
		require.Equal(t, http.StatusUnauthorized, status, name)
	}
	b := h.browser()
	u := reply(b).String()
	_, status, _ := h.open(h.browser(), "GET", u, nil)
	require.Equal(t, http.StatusBadRequest, status, "another browser")
	at, _, _ := h.open(b, "GET", u, nil)
	require.Equal(t, "/console", at)
	_, status, _ = h.open(b, "GET", u, nil)
	require.Equal(t, http.StatusBadRequest, status, "the same code again")
}

// TestSignIn_ProviderIsDown checks that a sign-in that the provider can't finish is a 503 with a
// time.
func TestSignIn_ProviderIsDown(t *testing.T) {
	t.Parallel()
	h := newSignInFixture(t, time.Hour)
	b := h.browser()
	form, _, _ := h.open(b, "GET", "/session?to=/console", nil)
	h.down.Store(true)
	res := must.Get(b.PostForm(form, url.Values{"user": {"shop"}}))(t)
	defer res.Body.Close()
	require.Equal(t, http.StatusServiceUnavailable, res.StatusCode)
	require.Equal(t, "1", res.Header.Get("Retry-After"))
	require.Contains(t, string(must.Get(io.ReadAll(res.Body))(t)), "not possible just now")
}

func TestSignIn_ReturnsToOwnPagesOnly(t *testing.T) {
	t.Parallel()
	h := newSignInFixture(t, time.Hour)
	for _, to := range []string{
		"//evil.example", "https://evil.example", `/\evil.example`, "/console/../x", "x",
	} {
		at, status := h.signIn(h.browser(), "/session?to="+url.QueryEscape(to), "ada")
		require.Equal(t, "/", at, to)
		require.Equal(t, http.StatusOK, status)
	}
}

// TestIssuer_KeysRotateWhileRequestsRun rotates the provider's key three times while buyers call
// the API with the newest token, and then withdraws the former keys.
func TestIssuer_KeysRotateWhileRequestsRun(t *testing.T) {
	t.Parallel()
	h := newSignInFixture(t, time.Hour)
	sign := func() string {
		return h.provider.Sign(t, map[string]any{
			"iss": h.provider.Issuer(), "aud": servers.OIDCClient, "sub": "idp|buyer-ada",
			"exp": time.Now().Add(time.Hour).Unix(),
		})
	}
	ask := func(token string) int {
		req := must.Get(http.NewRequestWithContext(t.Context(), "GET", h.base+"/orders", nil))(t)
		req.Header.Set("Authorization", "Bearer "+token)
		res := must.Get(http.DefaultClient.Do(req))(t)
		defer res.Body.Close()
		_, _ = io.Copy(io.Discard, res.Body)
		return res.StatusCode
	}
	accepted := func(token string) func() bool {
		return func() bool { return ask(token) == http.StatusOK }
	}
	var current atomic.Value
	first := sign()
	current.Store(first)
	require.Equal(t, http.StatusOK, ask(first))
	stop, refused := make(chan struct{}), atomic.Int64{}
	var callers sync.WaitGroup
	for range 4 {
		callers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if ask(current.Load().(string)) != http.StatusOK {
					refused.Add(1)
				}
			}
		})
	}
	for _, algorithm := range []string{"ES256", "EdDSA", "RS256"} {
		h.provider.Rotate(t, algorithm, true)
		token := sign()
		require.Eventually(t, accepted(token), 2*time.Minute, 200*time.Millisecond, algorithm)
		current.Store(token)
	}
	close(stop)
	callers.Wait()
	require.Zero(t, refused.Load(), "a token of a published key was refused")
	require.Equal(t, http.StatusOK, ask(first), "its key is still published")

	h.provider.Rotate(t, "ES256", false)
	require.Eventually(t, accepted(sign()), 2*time.Minute, 200*time.Millisecond)
	require.Equal(t, http.StatusUnauthorized, ask(first), "its key is withdrawn")
}
