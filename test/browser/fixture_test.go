package browser

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/glebarez/sqlite"
	_ "github.com/go-sql-driver/mysql" // the driver of exec
	"github.com/stretchr/testify/require"

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
	secret       []byte                     // of the tokens
	data         string                     // directory of a standalone
	screen       device                     // of buyers; the zero value is a phone
	installation *installation.Installation // nil for standalone
}

// standalone starts a standalone with settings.
func standalone(t *testing.T, settings ...string) fixture {
	t.Helper()
	data := t.TempDir()
	p := installation.StartProgram(t, "standalone", "SECKILL_HTTP_ADDR", settings, "-data", data)
	secret := must.Get(os.ReadFile(filepath.Join(data, "jwt-secret")))(t)
	return fixture{
		base:   "http://" + p.Addr,
		tokens: must.Get(auth.New(secret, 0, time.Now))(t), secret: secret, data: data,
	}
}

func realServers(t *testing.T, settings ...string) fixture {
	t.Helper()
	r := installation.Start(t, suite, installation.Options{APIs: 1, Consumers: 1, Env: settings})
	return fixture{
		base: r.Base(0), tokens: r.Tokens, secret: []byte(installation.Secret), installation: r,
	}
}

// visits opens a profile of a buyer.
func (h fixture) visits(t testing.TB) *visitor {
	t.Helper()
	if h.screen == (device{}) {
		h.screen = phone
	}
	return visit(t, h.base, h.screen)
}

// enters opens a profile of a user who has signed in.
func (h fixture) enters(
	t testing.TB, d device, role seckill.Role, id int64, name string,
) *visitor {
	t.Helper()
	v := visit(t, h.base, d)
	v.signIn(h.token(t, role, id, name))
	return v
}

// exec changes rows of the database, beside the programs, and returns their number.
func (h fixture) exec(t testing.TB, statement string, args ...any) int64 {
	t.Helper()
	file := filepath.Join(h.data, "seckill.db")
	driver, dsn := sqlite.DriverName, file+"?_pragma=busy_timeout(60000)"
	if h.installation != nil {
		driver, dsn = "mysql", h.installation.DSN
	}
	db := must.Get(sql.Open(driver, dsn))(t)
	defer db.Close()
	done, err := db.ExecContext(t.Context(), statement, args...)
	require.NoError(t, err)
	return must.Get(done.RowsAffected())(t)
}

func (h fixture) token(t testing.TB, role seckill.Role, id int64, name string) string {
	t.Helper()
	who := seckill.Actor{ID: fmt.Sprint(id), Role: role, Name: name, Phone: "+8613800000000"}
	return must.Get(h.tokens.Sign(who, time.Hour))(t)
}

func (h fixture) client(t testing.TB, role seckill.Role, id int64) apiclient.Client {
	t.Helper()
	return apiclient.Client{
		Base: h.base, Token: h.token(t, role, id, ""), HTTP: apiclient.NewHTTP(4),
	}
}

// sale describes a sale of the API. Its defaults: it began a minute ago and lasts an hour.
type sale struct {
	title                  string
	price, stock, perBuyer int64 // 100, 50 and 1 by default
	free                   bool
	start, end             time.Duration
	admission, accessCode  string
	merchant               int64 // 1 by default
}

// sells exposes a sale and returns its goods id.
func (h fixture) sells(t testing.TB, s sale) string {
	t.Helper()
	now := time.Now().UTC()
	price := cmp.Or(s.price, 100)
	if s.free {
		price = 0
	}
	return must.Get(h.client(t, seckill.Merchant, cmp.Or(s.merchant, 1)).PutUp(t.Context(), apiclient.NewSale{
		Title: s.title, Price: price, Stock: cmp.Or(s.stock, 50),
		PerBuyerLimit: cmp.Or(s.perBuyer, 1), StartAt: now.Add(cmp.Or(s.start, -time.Minute)),
		EndAt: now.Add(cmp.Or(s.end, time.Hour)), Admission: s.admission, AccessCode: s.accessCode,
	}))(t)
}

// signIn gives a visitor the session of a token, without the page for it.
func (v *visitor) signIn(token string) {
	v.t.Helper()
	body := strings.NewReader(fmt.Sprintf(`{"token":%q}`, token))
	answer := must.Get(http.Post(v.base+"/session", "application/json", body))(v.t)
	defer answer.Body.Close()
	require.Equal(v.t, http.StatusOK, answer.StatusCode)
	for _, c := range answer.Cookies() {
		v.do(func(ctx context.Context, tab *chromedp.Target) (chromedp.Void, error) {
			_, err := cdp.Call(ctx, tab, network.SetCookie, network.SetCookieParams{
				Name: c.Name, Value: c.Value, URL: v.base, HTTPOnly: &c.HttpOnly,
				SameSite: network.CookieSameSiteLax,
			})
			return chromedp.Void{}, err
		})
	}
}

// signsInWith signs a visitor in on the open page for it, as for an account of another system.
func (v *visitor) signsInWith(token string) {
	v.t.Helper()
	v.fill("#token", token)
	v.press("#enter button")
}

func (v *visitor) becomesSignedIn() {
	v.t.Helper()
	v.becomes("signed in",
		`location.pathname !== '/session' && document.documentElement.dataset.user`)
}

// card returns the selector of a sale's card.
func card(goods string) string { return fmt.Sprintf(`.card[data-goods="%s"]`, goods) }

// element returns the script that finds a part of a sale's card.
func element(goods, class string) string {
	return fmt.Sprintf("document.querySelector('%s .%s')", card(goods), class)
}
