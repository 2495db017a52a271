package browser

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"flashsale.dev/seckill/internal/auth"
	"flashsale.dev/seckill/internal/loadgen/apiclient"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/testing/installation"
	"flashsale.dev/seckill/internal/testing/must"
)

// fixture is a running shop: standalone or on real servers.
type fixture struct {
	base         string
	tokens       *auth.Tokens
	installation *installation.Installation // nil for standalone
}

func standalone(t *testing.T, env ...string) fixture {
	t.Helper()
	data := t.TempDir()
	p := installation.StartProgram(t, "standalone", "SECKILL_HTTP_ADDR", env, "-data", data)
	secret := must.Get(os.ReadFile(filepath.Join(data, "jwt-secret")))(t)
	tokens := must.Get(auth.New(secret, 0, time.Now))(t)
	return fixture{base: "http://" + p.Addr, tokens: tokens}
}

func realServers(t *testing.T) fixture {
	t.Helper()
	r := installation.Start(t, suite, installation.Options{APIs: 1, Consumers: 1})
	return fixture{base: r.Base(0), tokens: r.Tokens, installation: r}
}

func (h fixture) token(t testing.TB, role seckill.Role, id int64, name string) string {
	t.Helper()
	token := must.Get(h.tokens.Sign(seckill.Actor{ID: id, Role: role, Name: name, Phone: "+8613800000000"}, time.Hour))(t)
	return token
}

func (h fixture) client(t testing.TB, role seckill.Role, id int64) apiclient.Client {
	t.Helper()
	return apiclient.Client{Base: h.base, Token: h.token(t, role, id, ""), HTTP: apiclient.NewHTTP(4)}
}

// sale puts up a sale by the API.
func (h fixture) sale(t testing.TB, title string, price, stock, perBuyer int64, start, end time.Duration) string {
	t.Helper()
	now := time.Now().UTC()
	goods := must.Get(h.client(t, seckill.Merchant, 1).PutUp(t.Context(), apiclient.NewSale{
		Title: title, Price: price, Stock: stock, PerBuyerLimit: perBuyer, StartAt: now.Add(start), EndAt: now.Add(end),
	}))(t)
	return goods
}

// signIn signs a visitor in with a token, as one who has an account elsewhere.
func (v *visitor) signIn(token string) {
	v.t.Helper()
	v.open("/session")
	v.fill("#token", token)
	v.press("#enter button")
	v.becomes("signed in", `location.pathname !== '/session' && document.documentElement.dataset.user`)
}

func card(goods string) string { return fmt.Sprintf(`.card[data-goods="%s"]`, goods) }
