package browser

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testing/installation"
	"flashsale.dev/seckill/internal/testing/servers"
)

// TestSignIn_AtAnIdentityProvider signs a merchant and a buyer in at a running OpenID Connect
// provider. The provider has another port, so it is another origin for the browser.
func TestSignIn_AtAnIdentityProvider(t *testing.T) {
	t.Parallel()
	provider := servers.OIDC(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr := listener.Addr().String()
	require.NoError(t, listener.Close())
	base := "http://" + addr
	provider.SetRedirect(t, base+"/session/callback")
	p := installation.StartProgram(t, "standalone", "SECKILL_HTTP_ADDR", []string{
		"SECKILL_HTTP_ADDR=" + addr,
		"SECKILL_OIDC_ISSUER=" + provider.Issuer(), "SECKILL_OIDC_AUDIENCE=" + servers.OIDCClient,
		"SECKILL_OIDC_ROLE_CLAIM=realm.roles", "SECKILL_PUBLIC_URL=" + base,
	}, "-data", t.TempDir())
	require.Equal(t, addr, p.Addr)

	merchant, buyer := visit(t, base, desktop), visit(t, base, phone)
	merchant.leadsTo(provider.Issuer())
	buyer.leadsTo(provider.Issuer())
	merchant.chooses(provider, "/console/sales/7", "shop")
	merchant.becomes("the page that was opened", `location.pathname === '/console/sales/7'`)
	merchant.open("/session")
	merchant.sees("h1", "Shop")
	merchant.press("#leave")
	merchant.becomes("signed out", `location.pathname === '/' && !document.documentElement.dataset.user`)

	buyer.open("/session")
	buyer.press(".sheet a.button")
	buyer.becomes("at the provider", `location.origin === '`+provider.Issuer()+`'`)
	buyer.press(`button[value=ada]`)
	buyer.becomes("signed in", `location.pathname === '/' && document.documentElement.dataset.user`)
	buyer.sees(".who", "Ada Lovelace")
}

// leadsTo allows pages to lead to another origin.
func (v *visitor) leadsTo(issuer string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.issuer = issuer
}

// chooses opens a page, which leads to the provider, and chooses a user there.
func (v *visitor) chooses(provider *servers.OIDCServer, page, user string) {
	v.t.Helper()
	v.open(page)
	v.becomes("at the provider", `location.origin === '`+provider.Issuer()+`'`)
	v.press(`button[value=` + user + `]`)
}
