package browser

import (
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/auth"
	"flashsale.dev/seckill/internal/loadgen/apiclient"
	"flashsale.dev/seckill/internal/testing/installation"
	"flashsale.dev/seckill/internal/testing/must"
	"flashsale.dev/seckill/internal/testing/servers"
)

// TestSignIn_AtAnIdentityProvider signs a merchant and a buyer in at a running OpenID Connect
// provider. The provider has another port, so it is another origin for the browser.
func TestSignIn_AtAnIdentityProvider(t *testing.T) {
	t.Parallel()
	provider, h := withIssuer(t)
	signsInAndOut(t, h.base, provider)
}

func signsInAndOut(t *testing.T, base string, provider *servers.OIDCServer) {
	merchant, buyer := visit(t, base, desktop), visit(t, base, phone)
	merchant.leadsTo(provider.Issuer())
	merchant.chooses(provider, "/console/sales/7", "shop")
	merchant.becomes("the page that was opened", `location.pathname === '/console/sales/7'`)
	merchant.open("/session")
	merchant.sees("h1", "Shop")
	merchant.press("#leave")
	merchant.becomes("signed out",
		`location.pathname === '/' && !document.documentElement.dataset.user`)

	buyer.signsInAt(provider, "ada")
	require.True(t, buyer.is(`location.pathname === '/'`))
	buyer.sees(".who", "Ada Lovelace")
}

// withIssuer starts a provider, and a standalone whose users it signs in.
func withIssuer(t *testing.T) (*servers.OIDCServer, fixture) {
	t.Helper()
	addr, data := servers.FreeAddr(t, "127.0.0.1"), t.TempDir()
	provider, settings := issuer(t, addr)
	p := installation.StartProgram(t, "standalone", "SECKILL_HTTP_ADDR", settings, "-data", data)
	require.Equal(t, addr, p.Addr)
	secret := must.Get(os.ReadFile(filepath.Join(data, "jwt-secret")))(t)
	return provider,
		fixture{base: "http://" + addr, tokens: must.Get(auth.New(secret, 0, time.Now))(t)}
}

// issuer starts a provider, and returns the settings of a program at addr whose users it signs in.
func issuer(t *testing.T, addr string) (*servers.OIDCServer, []string) {
	t.Helper()
	provider, base := servers.OIDC(t), "http://"+addr
	provider.SetRedirect(t, base+"/session/callback")
	return provider, []string{
		"SECKILL_HTTP_ADDR=" + addr,
		"SECKILL_OIDC_ISSUER=" + provider.Issuer(), "SECKILL_OIDC_AUDIENCE=" + servers.OIDCClient,
		"SECKILL_OIDC_ROLE_CLAIM=realm.roles", "SECKILL_PUBLIC_URL=" + base,
	}
}

// TestSignIn_KeysRotateAndAreWithdrawnDuringRequests rotates and withdraws keys of the provider
// while signed-in pages poll and a back end calls. It then revokes the back end's API key.
func TestSignIn_KeysRotateAndAreWithdrawnDuringRequests(t *testing.T) {
	t.Parallel()
	provider, h := withIssuer(t)
	goods := h.sells(t, sale{title: kettle, perBuyer: 9})
	as := func(token string) caller {
		return caller{apiclient.Client{Base: h.base, Token: token, HTTP: apiclient.NewHTTP(4)}, t}
	}
	sign := func(sub string, roles ...string) caller {
		return as(provider.Sign(t, map[string]any{
			"iss": provider.Issuer(), "aud": servers.OIDCClient, "sub": sub,
			"exp": time.Now().Add(time.Hour).Unix(), "realm": map[string]any{"roles": roles},
		}))
	}
	ada := visit(t, h.base, phone)
	ada.signsInAt(provider, "ada")
	first, shop := sign("shopper-1"), sign("shop-1", "merchant")
	first.gets("OK")
	stop, calls := first.keepsCalling("OK")

	// The provider rotates: the session goes on, and so do tokens of the former key.
	provider.Rotate(t, "ES256", true)
	ada.buys(goods, "Please pay by")
	sign("shopper-2").becomes("OK")
	first.gets("OK")
	eve := visit(t, h.base, desktop)
	eve.signsInAt(provider, "shop")

	// A back end's API key is revoked: every call that begins a second later is refused.
	var made struct{ ID, Key string }
	require.NoError(t, shop.Do(t.Context(), http.MethodPost, "/admin/api-keys",
		map[string]any{"name": "erp", "scopes": []string{"sales:read"}}, &made))
	backEnd := as(made.Key)
	answers, err := backEnd.Call(t.Context(), http.MethodGet, "/admin/sales", nil)
	require.NoError(t, err)
	require.Equal(t, "OK", answers.Reason)
	require.NoError(t, shop.Do(t.Context(), http.MethodDelete, "/admin/api-keys/"+made.ID, nil,
		nil))
	time.Sleep(time.Second)
	answers, err = backEnd.Call(t.Context(), http.MethodGet, "/admin/sales", nil)
	require.NoError(t, err)
	require.Equal(t, "UNAUTHENTICATED", answers.Reason)
	stop()
	require.Greater(t, calls(), 20)

	// The provider withdraws all former keys: their tokens are refused within a minute, and at once
	// where a token of the new key makes the API fetch the keys.
	provider.Rotate(t, "EdDSA", false)
	third := sign("shopper-3")
	third.becomes("OK")
	first.gets("UNAUTHENTICATED")
	shop.gets("UNAUTHENTICATED")
	require.Equal(t, float64(http.StatusUnauthorized), ask[float64](eve, `fetch('/session',
		{method: 'POST', headers: {Authorization: 'Bearer `+first.Token+`'}}).then((r) => r.status)`))
	ada.open("/")
	ada.sees(order, kettle) // the session lasts until it expires
	ada.pays()
	eve.open("/session")
	eve.press("#leave")
	eve.becomes("signed out", `!document.documentElement.dataset.user`)
	eve.signsInAt(provider, "shop")
}

// caller calls the API with a token.
type caller struct {
	apiclient.Client
	t *testing.T
}

// reason returns the reason of an answer to a user's own call.
func (c caller) reason() string {
	answer, err := c.Call(c.t.Context(), http.MethodGet, "/orders", nil)
	if err != nil {
		return err.Error()
	}
	if answer.Reason == "FORBIDDEN" { // a merchant, whose token is valid
		return "OK"
	}
	return answer.Reason
}

func (c caller) gets(reason string) {
	c.t.Helper()
	require.Equal(c.t, reason, c.reason())
}

// becomes waits for an answer: the API fetches the keys of the issuer at most every five seconds.
func (c caller) becomes(reason string) {
	c.t.Helper()
	require.Eventually(c.t, func() bool { return c.reason() == reason }, time.Minute,
		50*time.Millisecond)
}

// keepsCalling calls until stop, which requires that every answer had the reason.
func (c caller) keepsCalling(reason string) (stop func(), calls func() int) {
	var done atomic.Bool
	var n atomic.Int64
	ended := make(chan string, 1)
	go func() {
		for !done.Load() {
			if got := c.reason(); got != reason {
				ended <- got
				return
			}
			n.Add(1)
			time.Sleep(10 * time.Millisecond)
		}
		ended <- reason
	}()
	return func() {
		c.t.Helper()
		done.Store(true)
		require.Equal(c.t, reason, <-ended)
	}, func() int { return int(n.Load()) }
}

// leadsTo allows pages to lead to another origin.
func (v *visitor) leadsTo(issuer string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.issuer = issuer
}

// signsInAt signs a visitor in from the page for it.
func (v *visitor) signsInAt(provider *servers.OIDCServer, user string) {
	v.t.Helper()
	v.leadsTo(provider.Issuer())
	v.open("/session")
	v.press(".sheet a.button")
	v.becomes("at the provider", `location.origin === '`+provider.Issuer()+`'`)
	v.press(`button[value=` + user + `]`)
	v.becomesSignedIn()
}

// chooses opens a page, which leads to the provider, and chooses a user there.
func (v *visitor) chooses(provider *servers.OIDCServer, page, user string) {
	v.t.Helper()
	v.open(page)
	v.becomes("at the provider", `location.origin === '`+provider.Issuer()+`'`)
	v.press(`button[value=` + user + `]`)
}
