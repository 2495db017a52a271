package httpapi_test

import (
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/seckill"
)

// openPage requests a page; header fields come in pairs.
func (h *fixture) openPage(path string, header ...string) (*http.Response, string) {
	h.t.Helper()
	req, err := http.NewRequestWithContext(h.t.Context(), http.MethodGet, h.url+path, nil)
	require.NoError(h.t, err)
	req.Header.Set("Accept-Encoding", "identity")
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := h.client.Do(req)
	require.NoError(h.t, err)
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	require.NoError(h.t, err)
	return res, string(body)
}

func TestPages_HaveAStrictPolicy(t *testing.T) {
	h := newFixture(t)
	h.sell(43)
	who := h.enter(seckill.Actor{ID: 1, Role: seckill.Operator})
	for _, path := range []string{"/", "/session", "/?utm_source=x&lang=xx"} {
		for _, cookie := range []string{"", who.Name + "=" + who.Value, "session=broken"} {
			res, body := h.openPage(path, "Cookie", cookie)
			require.Equal(t, http.StatusOK, res.StatusCode, path)
			require.Equal(t, "text/html; charset=utf-8", res.Header.Get("Content-Type"))
			require.Equal(t, "no-store", res.Header.Get("Cache-Control"))
			require.NotContains(t, res.Header.Get("Content-Security-Policy"), "unsafe")
			require.Contains(t, res.Header.Get("Content-Security-Policy"), "default-src 'none'; script-src 'self'")
			require.NotRegexp(t, `<script(>| [^>]*type="text/javascript")|style=|<style| on[a-z]+="`, body, "%s: a script or a style of its own", path)
			require.NotRegexp(t, `(href|src)="(https?:)?//`, body, "%s: something from elsewhere", path)
			require.Contains(t, body, "</html>")
		}
	}
}

// What a page loads is there, is answered what it is, may be kept for ever, and is small.
func TestAssets_AreCachedAndCompressed(t *testing.T) {
	h := newFixture(t)
	_, body := h.openPage("/")
	total := len(body)
	links := regexp.MustCompile(`(?:href|src)="(/assets/[^"#]+)`).FindAllStringSubmatch(body, -1)
	require.Greater(t, len(links), 5)
	seen := map[string]bool{}
	for _, l := range links {
		if seen[l[1]] {
			continue
		}
		seen[l[1]] = true
		res, asset := h.openPage(l[1])
		require.Equal(t, http.StatusOK, res.StatusCode, l[1])
		require.Equal(t, "public, max-age=31536000, immutable", res.Header.Get("Cache-Control"))
		require.NotEqual(t, "application/octet-stream", res.Header.Get("Content-Type"), l[1])
		total += len(asset)
		zipped, _ := h.openPage(l[1], "Accept-Encoding", "gzip")
		require.Equal(t, "gzip", zipped.Header.Get("Content-Encoding"))
	}
	require.Less(t, total, 100_000, "uncompressed")
	t.Logf("%d bytes in %d files", total, len(seen)+1)
	res, _ := h.openPage("/assets/0000/style.css")
	require.Equal(t, http.StatusNotFound, res.StatusCode)
}

func TestPages_FollowTheVisitorsLanguage(t *testing.T) {
	h := newFixture(t)
	for accept, want := range map[string]string{
		"": "en", "zh-CN,zh;q=0.9": "zh", "fr, zh;q=0.5, en;q=0.4": "zh", "de": "en", "en-US": "en", ";;;": "en", "zh-TW": "zh",
	} {
		_, body := h.openPage("/", "Accept-Language", accept)
		require.Contains(t, body, `data-lang="`+want+`"`, accept)
	}
	res, _ := h.openPage("/session?lang=zh")
	require.Equal(t, http.StatusSeeOther, res.StatusCode)
	require.Equal(t, "/session", res.Header.Get("Location"))
	require.Contains(t, res.Header.Get("Set-Cookie"), "lang=zh;")
	_, body := h.openPage("/session", "Cookie", "lang=zh", "Accept-Language", "en")
	require.Contains(t, body, `lang="zh-Hans"`)
}

// A page is rendered from what the node remembers: none takes longer than 50 ms.
func TestShopPage_IsRenderedFast(t *testing.T) {
	h := newFixture(t)
	for id := range int64(60) {
		h.sell(id + 1)
	}
	h.openPage("/")
	began := time.Now()
	const times = 20
	for range times {
		res, body := h.openPage("/")
		require.Equal(t, http.StatusOK, res.StatusCode)
		require.Equal(t, 60, strings.Count(body, `class="card `))
	}
	t.Logf("a page of 60 sales took %s", time.Since(began)/times)
}

func TestShopPage_EscapesTitles(t *testing.T) {
	h := newFixture(t)
	h.sell(43)
	h.mu.Lock()
	s := h.sales[43]
	s.Title = `<script>alert(1)</script>"'&`
	h.sales[43] = s
	h.mu.Unlock()
	_, body := h.openPage("/")
	require.NotContains(t, body, "<script>alert")
	require.Contains(t, body, "&lt;script&gt;alert(1)")
}
