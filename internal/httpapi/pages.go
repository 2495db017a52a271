package httpapi

import (
	"cmp"
	"compress/gzip"
	"context"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"flashsale.dev/seckill/internal/apierror"
	"flashsale.dev/seckill/internal/httpapi/params"
	"flashsale.dev/seckill/internal/httpapi/web"
	"flashsale.dev/seckill/internal/order/shipping"
	"flashsale.dev/seckill/internal/ratelimit/gate"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/waitingroom"
)

const (
	// salesOnPage is how many sales the shop page shows at once. Rows of two, three and four cards
	// are then complete, and the page stays below 85 KB, which phones load fast.
	salesOnPage = 12
	// maxSearch limits the text of a search, in bytes. Titles are shorter.
	maxSearch = 500
)

// pages are the routes of HTML pages and of their assets. They are not part of the API.
func (a *api) pages() []route {
	show := func(path string, handle handleFunc) route {
		return route{methods: read, path: path, public: true, unchecked: true, handle: handle}
	}
	all := []route{
		show("/", a.shopPage),
		show("/s/:goodsId", a.salePage),
		show("/s/:goodsId/calendar.ics", a.saleCalendar),
		show("/s/:goodsId/draw", a.drawPage),
		show("/o/:orderSn", a.purchasePage),
		show("/session", a.sessionPage),
		show("/console", a.consolePage("console")),
		show("/console/sales/:goodsId", a.consolePage("sale")),
		show("/console/keys", a.consolePage("keys")),
		show("/console/operations", a.consolePage("operations")),
		show("/console/orders/:orderSn", a.consolePage("order")),
		show("/console/audit", a.consolePage("audit")),
		show("/console/webhooks", a.consolePage("webhooks")),
		show("/console/webhooks/:id", a.consolePage("webhook")),
		show(web.AssetPath+":version/:name", a.asset),
	}
	if a.Issuer.SignsIn() { // without HEAD, because a code can be used once
		all = append(all, route{
			methods: http.MethodGet, path: SignInCallback, public: true, unchecked: true,
			handle: a.finishSignIn,
		})
	}
	return all
}

// shopPage is the buyers' page. It reads every exposed sale, from the cache of GET /sales. The
// query may have a text that titles contain (q), a phase and the number of the page. Unknown values
// are ignored, because people follow links of any age.
func (a *api) shopPage(ctx context.Context, r *request) (response, error) {
	query := r.gin.Query
	filter := web.Filter{Text: strings.TrimSpace(query("q"))}
	if len(filter.Text) > maxSearch {
		filter.Text = ""
	}
	if slices.Contains(web.Phases(), query("phase")) {
		filter.Phase = query("phase")
	}
	number, _ := strconv.Atoi(query("page")) // 0 is the first, too
	views, err := a.list.Sales(ctx, nil, 0, math.MaxInt)
	if err != nil {
		return a.stopPage(r, apierror.Unavailable, "down")
	}
	now := time.Now()
	sales := make([]web.Sale, 0, len(views))
	for _, v := range views {
		sales, now = append(sales, a.cardOf(v)), v.Now
	}
	shop := web.NewShop(sales, filter, number, salesOnPage)
	for i := range shop.Now {
		a.setReturns(ctx, &shop.Now[i])
	}
	return a.page(r, reasonOK, web.Page{Name: "shop", Now: now, Data: shop})
}

// cardOf converts a sale for the template of its card.
func (a *api) cardOf(v seckill.View) web.Sale {
	return web.Sale{
		GoodsID: strconv.FormatInt(v.GoodsID, 10), Title: v.Title,
		Price: v.Price, Currency: a.currency(v.Details),
		Description: v.Details.Description, ImageURL: v.Details.ImageURL,
		PerBuyerLimit: v.PerBuyerLimit, Admission: string(v.Admission),
		AccessCode: string(v.AccessCode),
		Phase:      string(v.Phase()), Available: v.Available, Total: v.Total,
	}.WithTimes(v.StartAt, v.EndAt)
}

// setReturns sets sale.Returns of a sale with a waiting room that is sold out. So the card says
// that units may return, also before its script has run. A room that cannot be read leaves the sale
// as it is.
func (a *api) setReturns(ctx context.Context, sale *web.Sale) {
	if !sale.HasRoom() || sale.Phase != string(seckill.PhaseSoldOut) {
		return
	}
	id, _ := params.Decimal(sale.GoodsID) // cardOf has written it
	if room, err := a.Rooms.Status(ctx, id); err == nil {
		sale.Returns = room.Phase() == waitingroom.PhaseRunning
	}
}

// salePage is a sale's own page, which links of other sites open.
func (a *api) salePage(ctx context.Context, r *request) (response, error) {
	v, err := a.saleOf(ctx, r)
	if err != nil {
		return a.noSale(r, err)
	}
	sale := a.cardOf(v)
	a.setReturns(ctx, &sale)
	summary, err := a.Site.Summary(web.LangOf(r.gin.Request), sale)
	if err != nil {
		return response{}, err
	}
	return a.page(r, reasonOK, web.Page{
		Name: "item", Now: v.Now, Data: sale, Policy: sale.Policy(), Preview: &web.Preview{
			Title: sale.Title, Description: summary, Image: sale.Picture(),
			URL: a.absolute(r.gin.Request, "/s/"+sale.GoodsID),
		},
	})
}

// saleCalendar is the calendar file with the start of a sale.
func (a *api) saleCalendar(ctx context.Context, r *request) (response, error) {
	v, err := a.saleOf(ctx, r)
	if err != nil {
		return a.noSale(r, err)
	}
	sale := a.cardOf(v)
	file := web.Calendar(sale, a.absolute(r.gin.Request, "/s/"+sale.GoodsID), v.Now)
	return response{stream: func(c *gin.Context) {
		name := "sale-" + sale.GoodsID + ".ics"
		c.Writer.Header().Set("Content-Disposition", `attachment; filename="`+name+`"`)
		c.Data(http.StatusOK, "text/calendar; charset=utf-8", file)
	}}, nil
}

// drawPage is where visitors recompute the draw of a sale's waiting room. The page's script reads
// the room's public state.
func (a *api) drawPage(ctx context.Context, r *request) (response, error) {
	v, err := a.saleOf(ctx, r)
	if err != nil {
		return a.noSale(r, err)
	}
	sale := a.cardOf(v)
	if !sale.HasRoom() {
		return a.stopPage(r, apierror.NotFound, "missing")
	}
	return a.page(r, reasonOK, web.Page{Name: "draw", Now: v.Now, Data: sale})
}

// saleOf reads the sale that a page's address names. Errors are those of the catalog.
func (a *api) saleOf(ctx context.Context, r *request) (seckill.View, error) {
	id, ok := params.Decimal(r.gin.Param("goodsId"))
	if !ok || id <= 0 {
		return seckill.View{}, apierror.New(apierror.NotFound, "there is no such sale")
	}
	return a.Catalog.SaleWithDetails(ctx, id)
}

// noSale is the page in place of a sale that cannot be read.
func (a *api) noSale(r *request, err error) (response, error) {
	if apierror.ReasonOf(err) == apierror.NotFound {
		return a.stopPage(r, apierror.NotFound, "sale")
	}
	return a.stopPage(r, apierror.Unavailable, "down")
}

// absolute returns the address of a page for other sites: below the public URL, or below the
// address by which the request came.
func (a *api) absolute(r *http.Request, path string) string {
	if a.PublicURL != "" {
		return strings.TrimRight(a.PublicURL, "/") + path
	}
	scheme := "http"
	if a.isTLS(r) {
		scheme = "https"
	}
	return scheme + "://" + r.Host + path
}

// sessionPage is where users sign in and out. A page that needs a user names itself in the query;
// where there is an issuer, the browser then goes there at once.
func (a *api) sessionPage(_ context.Context, r *request) (response, error) {
	to := r.gin.Query("to")
	if a.Issuer.SignsIn() && to != "" && a.visitor(r.gin.Request).ID == "" {
		return a.beginSignIn(r, to)
	}
	signIn := web.SignIn{Issuer: a.Issuer.SignsIn()}
	for _, g := range a.guestsFor(r.gin.Request) {
		signIn.Guests = append(signIn.Guests, userOf(g))
	}
	return a.page(r, reasonOK, web.Page{Name: "session", Data: signIn})
}

// userOf converts an actor for the templates.
func userOf(by seckill.Actor) web.User {
	return web.User{ID: by.ID, Role: string(by.Role), Name: by.Name}
}

// consolePage returns the handler of a console page: for sellers, and operations for operators
// only. The page's script fetches its data from the API.
func (a *api) consolePage(name string) handleFunc {
	return func(_ context.Context, r *request) (response, error) {
		by, goods := a.visitor(r.gin.Request), r.gin.Param("goodsId")
		sn, id := r.gin.Param("orderSn"), r.gin.Param("id")
		switch {
		case by.ID == "":
			return a.redirect("/session?to=" + url.QueryEscape(r.gin.Request.URL.Path)), nil
		case !isSeller(by) || name == "operations" && by.Role != seckill.Operator:
			return a.stopPage(r, apierror.Forbidden, "forbidden")
		}
		n, ok := params.Decimal(goods)
		if goods != "" && (!ok || n <= 0) || sn != "" && !isOrderSn(sn) || id != "" && !isUUID(id) {
			return a.stopPage(r, apierror.NotFound, "missing")
		}
		return a.page(r, reasonOK, web.Page{Name: name, Data: cmp.Or(goods, sn, id)})
	}
}

// purchasePage is the page of one order for its buyer. The page's script fetches the order.
func (a *api) purchasePage(_ context.Context, r *request) (response, error) {
	by, sn := a.visitor(r.gin.Request), r.gin.Param("orderSn")
	switch {
	case !isOrderSn(sn):
		return a.stopPage(r, apierror.NotFound, "missing")
	case by.ID == "":
		return a.redirect("/session?to=" + url.QueryEscape("/o/"+sn)), nil
	case !isBuyer(by):
		return a.stopPage(r, apierror.Forbidden, "forbidden")
	}
	return a.page(r, reasonOK, web.Page{Name: "purchase", Data: web.Purchase{
		OrderSn: sn, Countries: shipping.Countries(),
	}})
}

// visitor returns the actor of the session cookie, or the zero Actor without a valid one. Pages
// check no origin: a link from another site may open them, and they show nothing personal but a
// name.
func (a *api) visitor(r *http.Request) seckill.Actor {
	value, found := a.sessionValue(r)
	if !found {
		return seckill.Actor{}
	}
	by, _ := a.Tokens.Verify(value) // a page is shown to a visitor with a bad session too
	return by
}

// page renders a page, or switches the language where the query has a known one. The reason sets
// the status.
func (a *api) page(r *request, reason apierror.Reason, p web.Page) (response, error) {
	c := r.gin
	if lang := web.Lang(c.Query("lang")); lang.Known() {
		return a.switchLang(c, lang), nil
	}
	p.Lang, p.User = web.LangOf(c.Request), userOf(a.visitor(c.Request))
	p.Path, p.Query = c.Request.URL.Path, c.Request.URL.Query()
	if p.Now.IsZero() {
		p.Now = time.Now()
	}
	html, err := a.Site.Render(p)
	if err != nil {
		return response{}, err
	}
	return response{reason: reason, stream: func(c *gin.Context) {
		h := c.Writer.Header()
		h.Set("Content-Security-Policy", cmp.Or(p.Policy, web.Policy))
		h.Set("Referrer-Policy", "same-origin")
		h.Add("Vary", "Accept-Language, Cookie, Accept-Encoding")
		if reason == apierror.Unavailable {
			h.Set("Retry-After", gate.RetryAfter(0))
		}
		if negotiateGzip(c) {
			html = web.Compress(html, gzip.BestSpeed)
		}
		c.Data(statusOf(reason), "text/html; charset=utf-8", html)
	}}, nil
}

// stopPage explains why the requested page is not shown. Its texts are named "stop."+why and
// "stop."+why+".more".
func (a *api) stopPage(r *request, reason apierror.Reason, why string) (response, error) {
	return a.page(r, reason, web.Page{Name: "stop", Data: why})
}

// negotiateGzip reports whether the client takes gzip, and then names it in the response.
func negotiateGzip(c *gin.Context) bool {
	if !accepts(c.Request.Header["Accept-Encoding"], "gzip") {
		return false
	}
	c.Writer.Header().Set("Content-Encoding", "gzip")
	return true
}

// switchLang stores the language in a cookie and redirects to the same page. The rest of the query
// stays, such as the page to return to after signing in.
func (a *api) switchLang(c *gin.Context, lang web.Lang) response {
	cookie := http.Cookie{
		Name: web.LangCookie, Value: string(lang), Path: "/",
		MaxAge: int((365 * 24 * time.Hour).Seconds()), HttpOnly: true,
		Secure: a.isTLS(c.Request), SameSite: http.SameSiteLaxMode,
	}
	// Two slashes at the start, or a backslash, would lead to another site.
	to := "/" + strings.TrimLeft(c.Request.URL.EscapedPath(), "/")
	query := c.Request.URL.Query()
	query.Del("lang")
	if len(query) > 0 {
		to += "?" + query.Encode()
	}
	return a.redirect(to, &cookie)
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
func (a *api) asset(_ context.Context, r *request) (response, error) {
	found, ok := a.Site.Asset(r.gin.Param("version"), r.gin.Param("name"))
	if !ok {
		return response{}, apierror.New(apierror.NotFound, "there is no such call")
	}
	return response{stream: func(c *gin.Context) {
		h := c.Writer.Header()
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
		h.Add("Vary", "Accept-Encoding")
		body := found.Body
		if negotiateGzip(c) {
			body = found.Gzip()
		}
		c.Data(http.StatusOK, found.Type, body)
	}}, nil
}
