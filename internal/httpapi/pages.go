package httpapi

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"flashsale.dev/seckill/internal/httpapi/params"
	"flashsale.dev/seckill/internal/httpapi/web"
	"flashsale.dev/seckill/internal/seckill"
)

// salesOnPage is how many sales the shop's page shows, the newest.
const salesOnPage = 60

// pages are what people look at: HTML, and what it loads. They are no part of the API, and take whatever stands in
// their addresses.
func (a *api) pages() []route {
	if a.Site == nil {
		return nil
	}
	read := []string{http.MethodGet, http.MethodHead}
	return []route{
		{methods: read, path: "/", public: true, unchecked: true, handle: a.shopPage},
		{methods: read, path: "/session", public: true, unchecked: true, handle: a.sessionPage},
		{methods: read, path: "/console", public: true, unchecked: true, handle: a.consolePage("console")},
		{methods: read, path: "/console/sales/:goodsId", public: true, unchecked: true, handle: a.consolePage("sale")},
		{methods: read, path: "/console/operations", public: true, unchecked: true, handle: a.consolePage("operations")},
		{methods: read, path: web.AssetPath + ":version/:name", public: true, unchecked: true, handle: a.asset},
	}
}

// shopPage is the buyers'.
func (a *api) shopPage(ctx context.Context, _ *request) (response, error) {
	views, err := a.catalog.Sales(ctx, 0, salesOnPage)
	if err != nil {
		return a.page(ctx, http.StatusServiceUnavailable, web.Page{Name: "stop", Data: "down"})
	}
	now := a.now()
	sales := make([]web.Sale, 0, len(views))
	for _, v := range views {
		sales, now = append(sales, cardOf(v)), v.Now
	}
	return a.page(ctx, http.StatusOK, web.Page{Name: "shop", Now: now, Data: web.GroupSales(sales)})
}

func cardOf(v seckill.View) web.Sale {
	return web.Sale{
		GoodsID: strconv.FormatInt(v.GoodsID, 10), Title: v.Title, Price: v.Price, PerBuyerLimit: v.PerBuyerLimit,
		Phase: string(v.PhaseAt(v.Now, v.Available)), Available: v.Available, Total: v.Total,
	}.WithTimes(v.StartAt, v.EndAt)
}

// sessionPage is where one signs in, and out.
func (a *api) sessionPage(ctx context.Context, _ *request) (response, error) {
	var door web.SignIn
	for _, g := range a.guests {
		door.Guests = append(door.Guests, userOf(g))
	}
	return a.page(ctx, http.StatusOK, web.Page{Name: "session", Data: door})
}

func userOf(by seckill.Actor) web.User {
	return web.User{ID: by.ID, Role: string(by.Role), Name: by.Name}
}

// consolePage is one of those who sell; the operations are the operators'. What is on it, its script asks the API.
func (a *api) consolePage(name string) func(ctx context.Context, _ *request) (response, error) {
	return func(ctx context.Context, _ *request) (response, error) {
		c := requestContextOf(ctx).gin
		by, id := a.visitor(c.Request), c.Param("goodsId")
		switch {
		case by.ID == 0:
			return a.redirect("/session?to=" + url.QueryEscape(c.Request.URL.Path)), nil
		case !isSeller(by) || name == "operations" && by.Role != seckill.Operator:
			return a.page(ctx, http.StatusForbidden, web.Page{Name: "stop", Data: "forbidden"})
		}
		if n, ok := params.Decimal(id); id != "" && (!ok || n <= 0) {
			return a.page(ctx, http.StatusNotFound, web.Page{Name: "stop", Data: "missing"})
		}
		return a.page(ctx, http.StatusOK, web.Page{Name: name, Data: id})
	}
}

// visitor is who looks at a page: nobody where there is no session, or one that has ended.
func (a *api) visitor(r *http.Request) seckill.Actor {
	value, found := a.sessionValue(r)
	if !found {
		return seckill.Actor{}
	}
	by, err := a.Tokens.Verify(value)
	if err != nil {
		return seckill.Actor{}
	}
	return by
}

// page answers with a page, or sends on who switches its language.
func (a *api) page(ctx context.Context, status int, p web.Page) (response, error) {
	c := requestContextOf(ctx).gin
	if lang := web.Lang(c.Query("lang")); lang.Known() {
		return a.switchLang(c, lang), nil
	}
	p.Lang, p.User, p.Path = web.LangOf(c.Request), userOf(a.visitor(c.Request)), c.Request.URL.Path
	if p.Now.IsZero() {
		p.Now = a.now()
	}
	html, err := a.Site.Render(p)
	if err != nil {
		return response{}, err
	}
	return response{stream: func(c *gin.Context) {
		h := c.Writer.Header()
		h.Set("Content-Security-Policy", web.Policy)
		h.Set("Referrer-Policy", "same-origin")
		h.Set("Vary", "Accept-Language, Cookie")
		c.Data(status, "text/html; charset=utf-8", html)
	}}, nil
}

// switchLang remembers a language and shows the same page again.
func (a *api) switchLang(c *gin.Context, lang web.Lang) response {
	keep := http.Cookie{
		Name: web.LangCookie, Value: string(lang), Path: "/", MaxAge: int((365 * 24 * time.Hour).Seconds()), HttpOnly: true,
		Secure: a.isTLS(c.Request), SameSite: http.SameSiteLaxMode,
	}
	return a.redirect(c.Request.URL.Path, &keep)
}

// sendTo sends a browser to another page of this site.
func (a *api) redirect(path string, cookies ...*http.Cookie) response {
	return response{stream: func(c *gin.Context) {
		for _, cookie := range cookies {
			c.Writer.Header().Add("Set-Cookie", cookie.String())
		}
		c.Redirect(http.StatusSeeOther, path)
	}}
}

// asset is what a page loads. Its address changes with its contents, so it may be kept for ever.
func (a *api) asset(ctx context.Context, _ *request) (response, error) {
	c := requestContextOf(ctx).gin
	found, ok := a.Site.Asset(c.Param("version"), c.Param("name"))
	if !ok {
		return response{}, seckill.NewError(seckill.NotFound, "there is no such call")
	}
	return response{stream: func(c *gin.Context) {
		h := c.Writer.Header()
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
		h.Set("Vary", "Accept-Encoding")
		body := found.Body
		if strings.Contains(c.GetHeader("Accept-Encoding"), "gzip") {
			h.Set("Content-Encoding", "gzip")
			body = found.Gzip
		}
		c.Data(http.StatusOK, found.Type, body)
	}}, nil
}
