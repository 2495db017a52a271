package httpapi_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/seckill"
)

// enter signs a browser in and gives the cookie that it got.
func (h *fixture) enter(who seckill.Actor, header ...string) *http.Cookie {
	h.t.Helper()
	token, err := h.tokens.Sign(who, time.Hour)
	require.NoError(h.t, err)
	body, err := json.Marshal(map[string]string{"token": token})
	require.NoError(h.t, err)
	r := h.ask(nil, "POST", "/session", string(body), header...)
	require.Equal(h.t, http.StatusOK, r.Status, r.raw)
	cookies := (&http.Response{Header: r.Header}).Cookies()
	require.Len(h.t, cookies, 1)
	return cookies[0]
}

func TestCreateSession_SetsAnHTTPOnlyCookie(t *testing.T) {
	h := newFixture(t)
	c := h.enter(buyer())
	require.Equal(t, "session", c.Name)
	require.True(t, c.HttpOnly)
	require.False(t, c.Secure)
	require.Equal(t, http.SameSiteLaxMode, c.SameSite)
	require.Equal(t, "/", c.Path)
	require.Positive(t, c.MaxAge, "as long as the token")

	c = h.enter(buyer(), "X-Forwarded-Proto", "https")
	require.Equal(t, "__Host-session", c.Name, "a proxy that is believed says TLS")
	require.True(t, c.Secure)
	require.Equal(t, http.StatusOK, h.ask(nil, "GET", "/orders", "", "Cookie", c.Name+"="+c.Value, "X-Forwarded-Proto", "https").Status)
	require.Equal(t, http.StatusUnauthorized, h.ask(nil, "GET", "/orders", "", "Cookie", c.Name+"="+c.Value).Status, "of the other name")
}

func TestAuthenticate_PrefersTheBearerToken(t *testing.T) {
	h := newFixture(t)
	c := h.enter(buyer())
	cookie := []string{"Cookie", c.Name + "=" + c.Value}
	require.Equal(t, http.StatusOK, h.ask(nil, "GET", "/orders", "", cookie...).Status)
	require.Equal(t, http.StatusForbidden, h.as(merchant(), "GET", "/orders", "", cookie...).Status, "the bearer counts")
	require.Equal(t, http.StatusUnauthorized, h.ask(nil, "GET", "/orders", "", append(cookie, "Authorization", "Bearer x")...).Status)
	require.Equal(t, http.StatusUnauthorized, h.ask(nil, "GET", "/orders", "", "Cookie", "session=x").Status)
	twice := []string{"Cookie", "session=x; " + c.Name + "=" + c.Value}
	require.Equal(t, http.StatusUnauthorized, h.ask(nil, "GET", "/orders", "", twice...).Status, "one of two is not ours")

	r := h.ask(nil, "DELETE", "/session", "", cookie...)
	require.Equal(t, http.StatusOK, r.Status)
	require.Contains(t, r.Header.Get("Set-Cookie"), "session=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax")
}

// What another site has a browser send must not count, reads included; programs say nothing of where they come from.
func TestAuthenticate_RefusesOtherSites(t *testing.T) {
	h := newFixture(t)
	c := h.enter(buyer())
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
			r := h.ask(nil, method, path, "", append([]string{"Cookie", c.Name + "=" + c.Value}, from.header...)...)
			require.Equal(t, from.status, r.Status, "%s: %s", name, call)
		}
		r := h.as(buyer(), "GET", "/orders", "", from.header...)
		require.Equal(t, 200, r.Status, "%s: a bearer is no cookie", name)
	}
	r := h.ask(nil, "POST", "/session", `{"token":"x"}`, "Sec-Fetch-Site", "cross-site")
	require.Equal(t, "FORBIDDEN", r.Reason, "nobody is signed in by another site")
}

func TestCreateSession_RefusesBadTokens(t *testing.T) {
	h := newFixture(t)
	for name, c := range map[string]struct {
		target, body, reason, field string
	}{
		"nothing":            {"/session", "", "UNAUTHENTICATED", ""},
		"no token":           {"/session", `{"token":"x"}`, "UNAUTHENTICATED", ""},
		"a number":           {"/session", `{"token":1}`, "BAD_REQUEST", "token"},
		"in the address":     {"/session?token=x", "", "BAD_REQUEST", "token"},
		"both":               {"/session", `{"token":"x","guest":2}`, "BAD_REQUEST", "guest"},
		"no such guest":      {"/session", `{"guest":3}`, "NOT_FOUND", ""},
		"a guest of no name": {"/session", `{"guest":"x"}`, "BAD_REQUEST", "guest"},
	} {
		r := h.ask(nil, "POST", c.target, c.body)
		require.Equal(t, c.reason, r.Reason, "%s: %s", name, r.raw)
		require.Empty(t, r.Header.Get("Set-Cookie"), name)
		if c.field != "" {
			require.Contains(t, string(r.Data), `"`+c.field+`"`, name)
		}
	}
	r := h.as(buyer(), "POST", "/session", "")
	require.Equal(t, "OK", r.Reason, "the header serves too")
	require.Contains(t, string(r.Data), `"userId":"`+text(buyer().ID)+`","role":"buyer"`)
	r = h.ask(nil, "POST", "/session", `{"guest":"2"}`)
	require.Contains(t, string(r.Data), `"name":"Ada"`)
}

// A shop's own tokens may hold more than a cookie can: the session holds only what we read.
func TestCreateSession_FitsACookie(t *testing.T) {
	h := newFixture(t)
	long := seckill.Actor{ID: 1<<63 - 1, Role: seckill.Merchant, Name: strings.Repeat("名", 120), Phone: strings.Repeat("1", 32)}
	require.Less(t, len(h.enter(long).String()), 2000)
}
