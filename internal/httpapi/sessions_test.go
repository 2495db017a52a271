package httpapi_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"flashsale.dev/seckill/internal/userid"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/httpapi"
	"flashsale.dev/seckill/internal/seckill"
)

// enter creates a browser session and returns its cookie.
func (h *fixture) enter(who actor, header ...string) *http.Cookie {
	h.t.Helper()
	body := `{"token":"` + strings.TrimPrefix(h.bearer(who), "Bearer ") + `"}`
	r := h.want(200, h.ask("POST", "/session", body, header...))
	cookies := (&http.Response{Header: r.Header}).Cookies()
	require.Len(h.t, cookies, 1)
	return cookies[0]
}

// cookie returns the Cookie header of a user's browser.
func (h *fixture) cookie(who actor) string {
	h.t.Helper()
	c := h.enter(who)
	return c.Name + "=" + c.Value
}

func TestCreateSession_SetsASmallHTTPOnlyCookie(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	c := h.enter(buyer())
	require.Equal(t, "session", c.Name)
	require.True(t, c.HttpOnly)
	require.False(t, c.Secure)
	require.Equal(t, http.SameSiteLaxMode, c.SameSite)
	require.Equal(t, "/", c.Path)
	require.Positive(t, c.MaxAge, "the cookie lives as long as the token")

	c = h.enter(buyer(), "X-Forwarded-Proto", "https")
	require.Equal(t, "__Host-session", c.Name, "a trusted proxy reports TLS")
	require.True(t, c.Secure)
	h.want(200,
		h.ask("GET", "/orders", "", "Cookie", c.Name+"="+c.Value, "X-Forwarded-Proto", "https"))
	require.Equal(t, http.StatusUnauthorized,
		h.ask("GET", "/orders", "", "Cookie", c.Name+"="+c.Value).Status,
		"without TLS the API must ignore the cookie for TLS")

	long := actor{
		ID: strings.Repeat("x", userid.MaxLen), Role: seckill.Merchant,
		Name: strings.Repeat("名", 120), Phone: strings.Repeat("1", 32),
	}
	require.Less(t, len(h.enter(long).String()), 2000,
		"the token is too large for a cookie, which stores only the claims that the API reads")
}

func TestAuthenticate_PrefersTheBearerToken(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	cookie := []string{"Cookie", h.cookie(buyer())}
	h.want(200, h.ask("GET", "/orders", "", cookie...))
	h.want(403, h.as(merchant(), "GET", "/orders", "", cookie...))
	h.want(401, h.ask("GET", "/orders", "", append(cookie, "Authorization", "Bearer x")...))
	h.want(401, h.ask("GET", "/orders", "", "Cookie", "session=x"))
	h.want(401, h.ask("GET", "/orders", "", "Cookie", cookie[1]+"; session=x")) // one is invalid

	r := h.want(200, h.ask("DELETE", "/session", "", cookie...))
	require.Contains(t, r.Header.Get("Set-Cookie"),
		"session=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax")
}

// TestAuthenticate_RefusesOtherSites checks that the API ignores a cookie in a request that another
// site caused, reads included. Browsers send the cookie with such requests. Programs send no header
// that names a site, so the API accepts their cookie.
func TestAuthenticate_RefusesOtherSites(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	cookie := h.cookie(buyer())
	host := strings.TrimPrefix(h.url, "http://")
	for name, from := range map[string]struct {
		header []string
		status int
	}{
		"a page of ours":                 {[]string{"Sec-Fetch-Site", "same-origin"}, 200},
		"the address bar":                {[]string{"Sec-Fetch-Site", "none"}, 200},
		"a program":                      {nil, 200},
		"another site":                   {[]string{"Sec-Fetch-Site", "cross-site"}, 403},
		"a neighbour":                    {[]string{"Sec-Fetch-Site", "same-site"}, 403},
		"an old browser, of ours":        {[]string{"Origin", "http://" + host}, 200},
		"an old browser, of another":     {[]string{"Origin", "http://evil.example"}, 403},
		"a page that hides its origin":   {[]string{"Origin", "null"}, 403},
		"another port of this very host": {[]string{"Origin", "http://127.0.0.1:1"}, 403},
	} {
		for _, call := range []string{"GET /orders", "DELETE /session"} {
			method, path, _ := strings.Cut(call, " ")
			r := h.ask(method, path, "", append(from.header, "Cookie", cookie)...)
			require.Equal(t, from.status, r.Status, "%s: %s", name, call)
		}
		h.want(200, h.as(buyer(), "GET", "/orders", "", from.header...)) // no cookie is sent
	}
	r := h.ask("POST", "/session", `{"token":"x"}`, "Sec-Fetch-Site", "cross-site")
	require.Equal(t, "FORBIDDEN", r.Reason, "another site cannot create a session")
}

func TestCreateSession_RefusesBadTokens(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	for name, c := range map[string]struct {
		target, body, reason, field string
	}{
		"nothing":          {"/session", "", "UNAUTHENTICATED", ""},
		"no token":         {"/session", `{"token":"x"}`, "UNAUTHENTICATED", ""},
		"a number":         {"/session", `{"token":1}`, "BAD_REQUEST", "token"},
		"in the address":   {"/session?token=x", "", "BAD_REQUEST", "token"},
		"both":             {"/session", `{"token":"x","guest":"2"}`, "BAD_REQUEST", "guest"},
		"no such guest":    {"/session", `{"guest":"3"}`, "NOT_FOUND", ""},
		"a guest's number": {"/session", `{"guest":2}`, "BAD_REQUEST", "guest"},
	} {
		r := h.ask("POST", c.target, c.body)
		require.Equal(t, c.reason, r.Reason, "%s: %s", name, r.Body)
		require.Empty(t, r.Header.Get("Set-Cookie"), name)
		if c.field != "" {
			require.Contains(t, string(r.Data), `"`+c.field+`"`, name)
		}
	}
	r := h.want(200, h.as(buyer(), "POST", "/session", "")) // from the header
	require.Contains(t, r.Body, `"userId":"7","role":"buyer"`)
	r = h.ask("POST", "/session", `{"guest":"2"}`)
	require.Contains(t, string(r.Data), `"name":"Ada"`)
}

// TestCreateSession_GuestsAreOnThisMachine presents requests that a site, a proxy or another
// machine can cause. A site whose name resolves to 127.0.0.1 sends its own name as Host and Origin.
func TestCreateSession_GuestsAreOnThisMachine(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	type caller struct {
		remote, host string
		header       []string
		old          bool // HTTP/1.0
	}
	here := caller{remote: "127.0.0.1:5", host: "localhost:8080"}
	as := func(header ...string) caller {
		return caller{remote: here.remote, host: here.host, header: header}
	}
	ask := func(handler http.Handler, method, target, body string, c caller) string {
		r := httptest.NewRequest(method, target, strings.NewReader(body))
		r.RemoteAddr, r.Host = c.remote, c.host
		if c.old {
			r.Proto, r.ProtoMinor = "HTTP/1.0", 0
		}
		r.Header.Set("Content-Type", "application/json")
		for i := 0; i < len(c.header); i += 2 {
			r.Header.Set(c.header[i], c.header[i+1])
		}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		return w.Body.String()
	}
	isGuest := func(handler http.Handler, c caller) bool {
		session := ask(handler, "POST", "/session", `{"guest":"2"}`, c)
		offered := strings.Contains(ask(handler, "GET", "/session", "", c), `data-guest="2"`)
		require.Equal(t, offered, strings.Contains(session, `"name":"Ada"`), "%v: %s", c, session)
		return offered
	}
	for _, c := range []caller{
		here,
		{remote: "[::1]:5", host: "[::1]:8080"},
		{remote: "127.0.0.1:5", host: "127.0.0.1"},
		as("Origin", "http://localhost:8080"),
	} {
		require.True(t, isGuest(h.handler, c), c)
	}
	strangers := []caller{
		{remote: "192.0.2.1:5", host: "localhost:8080"},
		{remote: "127.0.0.1:5", host: "rebound.example:8080"},
		{
			remote: "127.0.0.1:5", host: "rebound.example:8080",
			header: []string{"Origin", "http://rebound.example:8080"},
		},
		{remote: "127.0.0.1:5", host: "127.0.0.1.example"},
		as("Forwarded", "for=192.0.2.1"), as("X-Forwarded-For", "192.0.2.1"),
		as("X-Forwarded-Host", "shop.example"), as("X-Real-IP", "192.0.2.1"),
		as("Via", "1.1 proxy"),
		{remote: "127.0.0.1:5", host: "127.0.0.1:8080", old: true}, // nginx with proxy_pass alone
	}
	h.Deps.GuestsAnywhere = true
	anywhere := httpapi.New(h.Deps)
	for _, c := range strangers {
		require.False(t, isGuest(h.handler, c), c)
		require.True(t, isGuest(anywhere, c), "with -guests: %v", c)
	}
}
