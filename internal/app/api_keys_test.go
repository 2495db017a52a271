package app_test

import (
	"bufio"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/apikey"
	"flashsale.dev/seckill/internal/app"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/sqlstore"
	"flashsale.dev/seckill/internal/testing/must"
	"flashsale.dev/seckill/internal/testing/servers"
)

// madeKey is an API key with its text.
type madeKey struct {
	apikey.Key
	text string
}

// newKey makes a key of a merchant, as an operator.
func (h *fixture) newKey(merchantID string, scopes ...apikey.Scope) madeKey {
	service := apikey.Service{Store: h.Store}
	k, text, err := service.Create(h.t.Context(), operator(),
		apikey.NewKey{MerchantID: merchantID, Name: "stock system", Scopes: scopes})
	require.NoError(h.t, err)
	return madeKey{k, text}
}

// with sends a request with the text of an API key.
func (h *fixture) with(text, method, target, body string) reply {
	return h.as(seckill.Actor{}, method, target, body, "Authorization", "Bearer "+text)
}

// second returns another API on the fixture's servers, with caches of its own.
func (h *fixture) second() *fixture {
	other := *h
	other.api = must.Get(app.NewAPI(h.Parts, h.settings, access()))(h.t)
	other.server = httptest.NewServer(other.api.Handler)
	h.t.Cleanup(other.server.Close)
	other.url = other.server.URL
	return &other
}

// TestAPIKeys_RevokedOnOneNodeIsRefusedByAnother revokes a key by one API while another has it in
// its cache. Package apikey's tests prove the bound of that cache with a clock of their own.
func TestAPIKeys_RevokedOnOneNodeIsRefusedByAnother(t *testing.T) {
	for name, dsn := range map[string]func(testing.TB) string{
		"SQLite":  nil,
		"MariaDB": func(tb testing.TB) string { return servers.MariaDB(tb).NewDatabase(tb) },
	} {
		t.Run(name, func(t *testing.T) {
			h := open(t)
			if dsn != nil {
				store := must.Get(sqlstore.Open(t.Context(), dsn(t), ""))(t)
				t.Cleanup(func() { require.NoError(t, store.Close()) })
				require.NoError(t, store.Migrate(t.Context()))
				up := *h.Servers
				up.Store = store
				h = &fixture{Servers: &up, t: t, settings: h.settings, client: h.client}
			}
			one, two := h.second(), h.second()
			k := h.newKey("70", apikey.SalesRead)
			for _, node := range []*fixture{one, two} {
				r := node.with(k.text, "GET", "/admin/sales", "")
				require.Equal(t, "OK", r.Reason, r.Body)
			}
			one.does(merchant(), "DELETE", "/admin/api-keys/"+k.ID, "")
			for _, node := range []*fixture{one, two} {
				var last reply
				node.eventually(func() bool {
					last = node.with(k.text, "GET", "/admin/sales", "")
					return last.Reason == "UNAUTHENTICATED"
				}, "the revoked key was accepted")
				require.Contains(t, last.Body, "has been revoked")
			}
		})
	}
}

// TestAPIKeys_UseIsRecordedAndAuditedByName checks the last use of a key and the audit log.
func TestAPIKeys_UseIsRecordedAndAuditedByName(t *testing.T) {
	h := open(t)
	goods, k := h.draft("5", "1"), h.newKey(merchant().ID, apikey.SalesWrite)
	for _, path := range []string{"/expose", "/close"} {
		r := h.with(k.text, "POST", "/admin/sales/"+goods+path, "")
		require.Equal(t, "OK", r.Reason, r.Body)
	}
	audit := h.does(operator(), "GET", "/admin/sales/"+goods+"/audit", "").Body
	require.Equal(t, 2, strings.Count(audit, `"apiKey":{"id":"`+k.ID+`","name":"stock system"}`))
	h.eventually(func() bool {
		return strings.Contains(h.does(merchant(), "GET", "/admin/api-keys", "").Body,
			`"lastUsedAt"`)
	}, "the use was never recorded")

	// Changes of orders and of webhooks, which no sale's own change records.
	sn := h.buys(buyer(1), h.exposed("5", "1"), "1")
	other := h.newKey(merchant().ID, apikey.OrdersWrite, apikey.WebhooksWrite)
	for _, c := range [][2]string{
		{"/admin/orders/" + sn + "/reveal", ""},
		{"/admin/orders/" + sn + "/cancel", ""},
		{"/admin/webhooks", hook},
	} {
		r := h.with(other.text, "POST", c[0], c[1])
		require.Contains(t, []string{"OK", "CREATED"}, r.Reason, r.Body)
	}
	audit = h.does(merchant(), "GET", "/admin/audit", "").Body
	require.Equal(t, 3, strings.Count(audit, `"apiKey":{"id":"`+other.ID+`"`), audit)
}

// TestAPIKeys_NeverInLogs checks that no log has a part of a key's secret, at the level debug, and
// after refusals and with a database that fails.
func TestAPIKeys_NeverInLogs(t *testing.T) {
	h := open(t)
	r := h.as(merchant(), "POST", "/admin/api-keys", `{"name":"x","scopes":["sales:read"]}`)
	text := dataOf[struct{ Key string }](t, r).Key
	secret := text[strings.LastIndex(text, "_")+1:]
	h.with(text, "GET", "/admin/sales", "")
	h.with(text, "GET", "/admin/sales/1/orders", "")
	h.with(text+"0", "GET", "/admin/sales", "")
	h.with("sk_"+strings.Repeat("0", 26)+"_"+secret, "GET", "/admin/sales", "")
	closed := must.Get(sqlstore.Open(t.Context(), "sqlite:"+t.TempDir()+"/s.db", ""))(t)
	require.NoError(t, closed.Close())
	up := *h.Servers
	up.Store = closed
	broken := *h
	broken.Servers = &up
	down := broken.second().with(text, "GET", "/admin/sales", "")
	require.Equal(t, "UNAVAILABLE", down.Reason, down.Body)
	log := h.textOf(h.log)
	require.Contains(t, log, "API keys can't be checked")
	require.NotContains(t, log, secret)
	require.NotContains(t, down.Body, secret)
}

// TestAPIKeys_StreamEndsWithItsKey checks that a stream of figures ends after its key was revoked.
func TestAPIKeys_StreamEndsWithItsKey(t *testing.T) {
	h := open(t)
	goods, k := h.exposed("5", "1"), h.newKey(merchant().ID, apikey.SalesRead)
	res := must.Get(h.client.Do(h.request(seckill.Actor{}, "GET",
		"/admin/sales/"+goods+"/events", "", "Authorization", "Bearer "+k.text)))(t)
	defer res.Body.Close()
	lines := bufio.NewScanner(res.Body)
	for lines.Scan() && lines.Text() != "event: picture" {
	}
	h.does(merchant(), "DELETE", "/admin/api-keys/"+k.ID, "")
	ended := make(chan error, 1)
	go func() {
		_, err := io.Copy(io.Discard, res.Body)
		ended <- err
	}()
	select {
	case err := <-ended:
		require.NoError(t, err)
	case <-time.After(time.Minute):
		t.Fatal("the stream goes on")
	}
}

// slowClient is a client that waits before it takes the first rows of a file.
type slowClient struct {
	*httptest.ResponseRecorder
	wait func()
}

// Write gets the rows, and not the mark before them.
func (c *slowClient) Write(b []byte) (int, error) {
	if wait := c.wait; wait != nil {
		c.wait = nil
		wait()
	}
	return c.ResponseRecorder.Write(b)
}

// TestAPIKeys_ExportEndsWithItsKey checks that a file of buyers' data breaks off if its key is
// revoked while a slow client reads it.
func TestAPIKeys_ExportEndsWithItsKey(t *testing.T) {
	h := open(t)
	goods, k := h.exposed("2000", "1"), h.newKey(merchant().ID, apikey.OrdersRead)
	h.written(h.id(goods), 2000, 1)
	path := "/admin/sales/" + goods + "/orders"
	reader := &slowClient{httptest.NewRecorder(), func() {
		h.does(merchant(), "DELETE", "/admin/api-keys/"+k.ID, "")
		h.eventually(func() bool {
			return h.with(k.text, "GET", path, "").Reason == "UNAUTHENTICATED"
		}, "the revoked key was accepted")
	}}
	r := httptest.NewRequestWithContext(t.Context(), "GET", path+"?format=csv", nil)
	r.Header.Set("Authorization", "Bearer "+k.text)
	require.PanicsWithValue(t, http.ErrAbortHandler, func() { h.api.Handler.ServeHTTP(reader, r) })
	require.Less(t, strings.Count(reader.Body.String(), "\n"), 2000)
}
