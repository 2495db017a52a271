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

// salesOnPage is how many sales the shop page shows, the newest.
const salesOnPage = 60

// pages are the routes of HTML pages and of their assets. They are not part of the API.
func (a *api) pages() []route {
	if a.Site == nil {
		return nil
	}
	show := func(path string, handle func(context.Context, *request) (response, error)) route {
		return route{methods: readMethods(), path: path, public: true, unchecked: true, handle: handle}
	}
	return []route{
		show("/", a.shopPage),
		show("/session", a.sessionPage),
		show("/console", a.consolePage("console")),
		show("/console/sales/:goodsId", a.consolePage("sale")),
		show("/console/operations", a.consolePage("operations")),
		show(web.AssetPath+":version/:name", a.asset),
	}
}

// shopPage is the buyers' page. It shares the catalog's cache with GET /sales.
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

// cardOf converts a sale for the template of its card.
func cardOf(v seckill.View) web.Sale {
	return web.Sale{
		GoodsID: strconv.FormatInt(v.GoodsID, 10), Title: v.Title,
		Price: v.Price, PerBuyerLimit: v.PerBuyerLimit,
		Phase: string(v.PhaseAt(v.Now, v.Available)), Available: v.Available, Total: v.Total,
	}.WithTimes(v.StartAt, v.EndAt)
}

// sessionPage is where users sign in and out.
func (a *api) sessionPage(ctx context.Context, _ *request) (response, error) {
	var signIn web.SignIn
	for _, g := range a.guests {
		signIn.Guests = append(signIn.Guests, userOf(g))
	}
	return a.page(ctx, http.StatusOK, web.Page{Name: "session", Data: signIn})
}

// userOf converts an actor for the templates.
func userOf(by seckill.Actor) web.User {
	return web.User{ID: by.ID, Role: string(by.Role), Name: by.Name}
}

// consolePage returns the handler of a console page: for sellers, and operations for operators
// only. The page's script fetches its data from the API.
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

// visitor returns the actor of the session cookie, or the zero Actor without a valid one.
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

// page renders a page, or switches the language where the query asks for that.
func (a *api) page(ctx context.Context, status int, p web.Page) (response, error) {
	c := requestContextOf(ctx).gin
	if lang := web.Lang(c.Query("lang")); lang.Known() {
		return a.switchLang(c, lang), nil
	}
	p.Lang, p.User = web.LangOf(c.Request), userOf(a.visitor(c.Request))
	p.Path = c.Request.URL.Path
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

// switchLang stores the language in a cookie and redirects to the same page without the query.
func (a *api) switchLang(c *gin.Context, lang web.Lang) response {
	cookie := http.Cookie{
		Name: web.LangCookie, Value: string(lang), Path: "/",
		MaxAge: int((365 * 24 * time.Hour).Seconds()), HttpOnly: true,
		Secure: a.isTLS(c.Request), SameSite: http.SameSiteLaxMode,
	}
	return a.redirect(c.Request.URL.Path, &cookie)
}

// redirect sends a browser to another page of this site.
func (a *api) redirect(path string, cookies ...*http.Cookie) response {
	return response{stream: func(c *gin.Context) {
		for _, cookie := range cookies {
			c.Writer.Header().Add("Set-Cookie", cookie.String())
		}
		c.Redirect(http.StatusSeeOther, path)
	}}
}

// asset serves a script, a style sheet or a picture. Its address has a hash of the contents, so
// browsers may cache it for ever.
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
