package httpapi_test

import (
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/auth"
	"flashsale.dev/seckill/internal/httpapi"
	"flashsale.dev/seckill/internal/httpapi/web"
	"flashsale.dev/seckill/internal/testing/must"
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
	_, body := h.openPage("/session?to=%2Fconsole")
	require.Contains(t, body, `href="?lang=zh&amp;to=%2Fconsole"`)
	res, _ := h.openPage("/session?lang=zh&to=%2Fconsole")
	require.Equal(t, http.StatusSeeOther, res.StatusCode)
	require.Equal(t, "/session?to=%2Fconsole", res.Header.Get("Location"))
	require.Contains(t, res.Header.Get("Set-Cookie"), "lang=zh;")
	_, body = h.openPage("/session", "Cookie", "lang=zh", "Accept-Language", "en")
	require.Contains(t, body, `lang="zh-Hans"`)
}

// TestSalePage_IsReadableWithoutScripts checks a sale's page with a picture, and the preview that
// other sites show of it.
func TestSalePage_IsReadableWithoutScripts(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	goods := h.sell(sale{
		"title": `A "lamp" & more`, "price": 1999, "currency": "EUR", "perBuyerLimit": 3,
		"description": "Warm light.\n<b>Bright</b>.", "imageUrl": "https://cdn.example/lamp.jpg",
	})
	res, body := h.openPage("/s/"+goods, "X-Forwarded-Proto", "https")
	require.Equal(t, http.StatusOK, res.StatusCode)
	require.Equal(t, "no-store", res.Header.Get("Cache-Control"))
	require.Contains(t, res.Header.Get("Content-Security-Policy"),
		"img-src 'self' https://cdn.example;")
	address := "https://" + res.Request.Host + "/s/" + goods
	for _, part := range []string{
		`<title>A &#34;lamp&#34; &amp; more · Flash Sale</title>`,
		`<link rel="canonical" href="` + address + `">`,
		`<meta property="og:url" content="` + address + `">`,
		`<meta property="og:title" content="A &#34;lamp&#34; &amp; more">`,
		`<meta property="og:description" content="Warm light. &lt;b&gt;Bright&lt;/b&gt;.">`,
		`<meta property="og:image" content="https://cdn.example/lamp.jpg">`,
		`<meta name="twitter:card" content="summary_large_image">`,
		`<img src="https://cdn.example/lamp.jpg" alt=""`,
		"€19.99", "up to 3 each", "10 of 10 left", " UTC</time>", "Buying needs JavaScript",
	} {
		require.Contains(t, body, part)
	}
	_, shop := h.openPage("/")
	require.Contains(t, shop, `href="/s/`+goods+`"`)
}

// TestSalePage_WithoutDescriptionShowsThePrice checks the preview of a sale with neither picture
// nor description. Its address is below SECKILL_PUBLIC_URL.
func TestSalePage_WithoutDescriptionShowsThePrice(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	goods := h.sell(sale{"imageUrl": "https://evil.example;script-src/x.png"})
	h.PublicURL = "https://sale.example/"
	h.handler = httpapi.New(h.Deps)
	w := httptest.NewRecorder()
	h.handler.ServeHTTP(w, httptest.NewRequest("GET", "/s/"+goods, nil))
	require.Equal(t, web.Policy, w.Header().Get("Content-Security-Policy"))
	body := w.Body.String()
	require.Contains(t, body, `<link rel="canonical" href="https://sale.example/s/`+goods+`">`)
	require.Contains(t, body, `"og:description" content="¥1,999.00, 10 of 10 left">`)
	require.Contains(t, body, `<meta name="twitter:card" content="summary">`)
	require.NotContains(t, body, "og:image")
	require.NotContains(t, body, "<img")
}

// TestPages_SayWhatNeedsJavaScript checks the text of pages in a browser without scripts.
func TestPages_SayWhatNeedsJavaScript(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	goods := h.sell(nil)
	for path, cookie := range map[string]string{
		"/": "", "/session": "", "/s/" + goods: "", "/nothing": "", "/o/4fGh-1": h.cookie(buyer()),
		"/console": h.cookie(merchant()), "/console/sales/" + goods: h.cookie(merchant()),
		"/console/orders/4fGh-1": h.cookie(merchant()), "/console/operations": h.cookie(operator()),
	} {
		words := "Buying needs JavaScript"
		if strings.HasPrefix(path, "/console") {
			words = "The console needs JavaScript"
		}
		r := httptest.NewRequest("GET", path, nil)
		r.Header.Set("Accept", "text/html")
		r.Header.Set("Cookie", cookie)
		w := httptest.NewRecorder()
		h.handler.ServeHTTP(w, r)
		require.Regexp(t, "<noscript>[^\n]*"+words, w.Body.String(), path)
	}
}

// TestDrawPage_IsOfSalesWithALine checks where the page of a draw exists.
func TestDrawPage_IsOfSalesWithALine(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	with, without := h.sell(sale{"admission": "waitingRoom"}), h.sell(nil)
	res, body := h.openPage("/s/" + with + "/draw")
	require.Equal(t, http.StatusOK, res.StatusCode)
	require.Contains(t, body, "Check the draw")
	_, body = h.openPage("/s/" + with)
	require.Contains(t, body, `href="/s/`+with+`/draw"`)
	for id, words := range map[string]string{
		without: "no such page", "999999": "no such sale", "x": "no such sale",
	} {
		res, body = h.openPage("/s/" + id + "/draw")
		require.Equal(t, http.StatusNotFound, res.StatusCode, id)
		require.Contains(t, body, words)
	}
	_, body = h.openPage("/s/" + without)
	require.NotContains(t, body, "/draw")
}

// TestPages_SayThatUnitsMayReturn reads the HTML of a sale whose only unit an unpaid order holds.
// Buyers may still join its line. After the payment nothing can return.
func TestPages_SayThatUnitsMayReturn(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	goods := h.sell(sale{"admission": "waitingRoom", "stock": 1})
	room := "/sales/" + goods + "/waiting-room"
	h.want(200, h.as(buyer(), "POST", room, ""))
	called := func() bool {
		place := h.want(200, h.as(buyer(), "GET", room+"/me", ""))
		return dataOf[struct{ State string }](h, place).State == "admitted"
	}
	require.Eventually(t, called, time.Minute, 20*time.Millisecond)
	sn := h.order(buyer(), goods, 1)
	becomes := func(words string) {
		t.Helper()
		chip := `data-part="chip">` + words + `</p>`
		for _, page := range []string{"/", "/s/" + goods} {
			require.Eventually(t, func() bool { // nodes remember a room for a second
				_, body := h.openPage(page)
				return strings.Contains(body, chip)
			}, time.Minute, 20*time.Millisecond, "%s shows %s", page, words)
		}
	}
	becomes("Units may return")
	paid := func() bool { return h.as(buyer(), "POST", "/orders/"+sn+"/pay", "").Reason == "OK" }
	require.Eventually(t, paid, time.Minute, 20*time.Millisecond)
	becomes("Sold out")
}

// TestPages_AreCountedByTheirReason checks what the metrics have: an alert compares the answers
// with UNAVAILABLE to all. The issuer of this API has not answered.
func TestPages_AreCountedByTheirReason(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	deps, counted := h.Deps, map[string]string{}
	deps.Issuer = must.Get(auth.NewIssuer(auth.IssuerOptions{
		URL: "https://id.example", Audience: "x", Client: &http.Client{}, Now: time.Now,
		RedirectURL: "https://shop.example" + httpapi.SignInCallback,
	}))(t)
	deps.Recorder = func(route string) func(string, time.Duration) {
		return func(reason string, _ time.Duration) { counted[route] = reason }
	}
	handler, cookie := httpapi.New(deps), h.cookie(buyer())
	for path, status := range map[string]int{
		"/": 200, "/s/1": 404, "/console": 403, "/session?to=/": 503, "/console/x/y": 404,
	} {
		r := httptest.NewRequest("GET", path, nil)
		r.Header.Set("Accept", "text/html")
		if status != http.StatusServiceUnavailable {
			r.Header.Set("Cookie", cookie)
		}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		require.Equal(t, status, w.Code, path)
	}
	require.Equal(t, map[string]string{
		"/": "OK", "/s/:goodsId": "NOT_FOUND", "/console": "FORBIDDEN", "/session": "UNAVAILABLE",
		"other": "NOT_FOUND",
	}, counted)
}

// TestPages_VaryKeepsTheOrigin checks answers of an API with CORS: a cache must not send one to
// another origin. A client that refuses gzip gets none.
func TestPages_VaryKeepsTheOrigin(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	deps := h.Deps
	deps.CORSOrigins = []string{"https://shop.example"}
	handler := httpapi.New(deps)
	get := func(path string) *httptest.ResponseRecorder {
		r := httptest.NewRequest("GET", path, nil)
		r.Header.Set("Accept-Encoding", "gzip;q=0")
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		require.Equal(t, http.StatusOK, w.Code)
		require.Empty(t, w.Header().Get("Content-Encoding"))
		require.Contains(t, w.Header().Values("Vary"), "Origin", path)
		return w
	}
	style := regexp.MustCompile(`/assets/\w+/style.css`).FindString(get("/").Body.String())
	require.Contains(t, get(style).Header().Values("Vary"), "Accept-Encoding")
}

func TestSalePage_OfNoSaleLeadsBack(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	for _, id := range []string{h.draft(nil), "999999", "0", "x", "99999999999999999999"} {
		res, body := h.openPage("/s/" + id)
		require.Equal(t, http.StatusNotFound, res.StatusCode, id)
		require.Equal(t, "text/html; charset=utf-8", res.Header.Get("Content-Type"))
		require.Contains(t, body, "There is no such sale")
		require.Contains(t, body, `href="/"`)
	}
}

// TestUnknownPath_IsAPageForBrowsers checks that people read a page and programs JSON. It calls the
// handler itself, because the checked client refuses what api/openapi.yaml does not have.
func TestUnknownPath_IsAPageForBrowsers(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	serve := func(method, target, accept, lang string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(method, "http://sale.example"+target, nil)
		r.Header.Set("Accept", accept)
		r.Header.Set("Accept-Language", lang)
		w := httptest.NewRecorder()
		h.handler.ServeHTTP(w, r)
		return w
	}
	const browser, document = "text/html,application/xhtml+xml,*/*;q=0.8", "text/html; charset=utf-8"
	for _, path := range []string{"/nothing", "/s", "/console/nothing/at/all", "//evil.example"} {
		for lang, words := range map[string]string{"en": "There is no such page", "zh": "没有这个页面"} {
			for _, method := range []string{"GET", "HEAD"} {
				w := serve(method, path, browser, lang)
				require.Equal(t, http.StatusNotFound, w.Code, path)
				require.Equal(t, document, w.Header().Get("Content-Type"))
				require.Contains(t, w.Body.String(), words) // net/http drops it for HEAD
			}
		}
		for method, accept := range map[string]string{"GET": "*/*", "POST": browser, "HEAD": ""} {
			w := serve(method, path, accept, "en")
			require.Equal(t, http.StatusNotFound, w.Code, path)
			require.Contains(t, w.Body.String(), `"reason":"NOT_FOUND"`, "%s %s", method, path)
		}
	}
	for path, to := range map[string]string{
		"//evil.example": "/evil.example", `/%5Cevil.example`: "/%5Cevil.example",
	} {
		w := serve("GET", path+"?lang=zh", browser, "en")
		require.Equal(t, to, w.Header().Get("Location"), "a page of this site")
	}
}

// TestShopPage_LeadsToEverySale follows the links from the first page to the last, and searches.
func TestShopPage_LeadsToEverySale(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	const sales = 62
	for i := range sales {
		h.sell(sale{"title": fmt.Sprintf("Lamp %02d", i)})
	}
	link := regexp.MustCompile(`rel="next" href="([^"]+)"`)
	cards := regexp.MustCompile(`data-goods="(\d+)"`)
	var total int
	complete := func() bool { // the catalog is cached for a second
		total = 0
		for path := "/"; path != ""; {
			_, body := h.openPage(path)
			require.Less(t, len(body), 60_000)
			total += len(cards.FindAllString(body, -1))
			next := link.FindStringSubmatch(body)
			path = ""
			if next != nil {
				path = html.UnescapeString(next[1])
			}
		}
		return total == sales
	}
	require.Eventually(t, complete, time.Minute, 100*time.Millisecond)
	_, body := h.openPage("/?q=lamp+07&phase=ongoing")
	require.Len(t, cards.FindAllString(body, -1), 1)
	require.Contains(t, body, `value="lamp 07"`)
	_, body = h.openPage("/?q=lamp&phase=ended")
	require.Contains(t, body, "No sale matches")
	res, zipped := h.openPage("/", "Accept-Encoding", "gzip")
	require.Equal(t, "gzip", res.Header.Get("Content-Encoding"))
	require.Less(t, len(zipped), 10_000)
}

// TestSaleCalendar_FollowsRFC5545 checks the escapes, the times in UTC and the length of the lines.
func TestSaleCalendar_FollowsRFC5545(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	start := time.Now().Add(time.Hour).Truncate(time.Second)
	title := `Lamp; red, \ ` + strings.Repeat("灯", 40)
	goods := h.sell(sale{
		"title": title, "startAt": start, "endAt": start.Add(time.Hour),
	})
	_, body := h.openPage("/s/" + goods)
	require.Contains(t, body, `href="/s/`+goods+`/calendar.ics"`)
	res, file := h.openPage("/s/" + goods + "/calendar.ics")
	require.Equal(t, "text/calendar; charset=utf-8", res.Header.Get("Content-Type"))
	require.Equal(t, strings.Count(file, "\n"), strings.Count(file, "\r\n"))
	for line := range strings.SplitSeq(file, "\r\n") {
		require.LessOrEqual(t, len(line), 75)
		require.True(t, utf8.ValidString(line))
	}
	whole := strings.ReplaceAll(file, "\r\n ", "")
	require.Contains(t, whole, "\r\nDTSTART:"+start.UTC().Format("20060102T150405Z")+"\r\n")
	require.Contains(t, whole,
		"\r\nSUMMARY:"+`Lamp\; red\, \\ `+strings.Repeat("灯", 40)+"\r\n")
	require.Contains(t, whole, "\r\nURL:http://"+res.Request.Host+"/s/"+goods+"\r\n")
	res, _ = h.openPage("/s/1/calendar.ics")
	require.Equal(t, http.StatusNotFound, res.StatusCode)
}
