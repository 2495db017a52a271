package httpapi_test

import (
	"net/http"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// openPage requests a page without compression, unless the header requests gzip.
func (h *fixture) openPage(path string, header ...string) (*http.Response, string) {
	h.t.Helper()
	return h.do("GET", path, "", append(header, "Accept-Encoding", "identity")...)
}

// TestPages_HaveAStrictPolicy checks each page with a sale whose title is a script.
func TestPages_HaveAStrictPolicy(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	h.sell(sale{"title": `<script>alert(1)</script>"'&`})
	cookies := []string{"", h.cookie(operator()), "session=broken"}
	for _, path := range []string{"/", "/session", "/?utm_source=x&lang=xx"} {
		for _, cookie := range cookies {
			res, body := h.openPage(path, "Cookie", cookie)
			require.Equal(t, http.StatusOK, res.StatusCode, path)
			require.Equal(t, "text/html; charset=utf-8", res.Header.Get("Content-Type"))
			require.Equal(t, "no-store", res.Header.Get("Cache-Control"))
			policy := res.Header.Get("Content-Security-Policy")
			require.NotContains(t, policy, "unsafe")
			require.Contains(t, policy, "default-src 'none'; script-src 'self'")
			inline := `<script(>| [^>]*type="text/javascript")|style=|<style| on[a-z]+="`
			require.NotRegexp(t, inline, body, "%s: an inline script or style", path)
			require.NotRegexp(t, `(href|src)="(https?:)?//`, body, "%s: another site's file", path)
			require.NotContains(t, body, "<script>alert")
			require.Contains(t, body, "</html>")
		}
	}
	_, body := h.openPage("/")
	require.Contains(t, body, "&lt;script&gt;alert(1)")
}

// TestAssets_AreCachedAndCompressed checks each file that a page loads. The file exists, is small,
// has its own media type and is cacheable for a year.
func TestAssets_AreCachedAndCompressed(t *testing.T) {
	t.Parallel()
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
	res, _ := h.openPage("/assets/0000/style.css")
	require.Equal(t, http.StatusNotFound, res.StatusCode)
}

func TestPages_FollowTheVisitorsLanguage(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	for accept, want := range map[string]string{
		"": "en", "zh-CN,zh;q=0.9": "zh", "fr, zh;q=0.5, en;q=0.4": "zh", "de": "en",
		"en-US": "en", ";;;": "en", "zh-TW": "zh",
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
