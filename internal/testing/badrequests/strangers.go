package badrequests

import (
	"net/http"
	"strings"

	"flashsale.dev/seckill/internal/apierror"
)

// strangers adds well-formed requests for objects that do not exist, belong to another user, or
// need another role. Some have paths that are not the buyer's.
func (t *table) strangers() {
	t.notThere()
	t.notTheirs()
	t.wrongRole()
	t.badPaths()
}

// missing adds a case that must get NOT_FOUND.
func (t *table) missing(what string, c call) {
	t.add(what, c, apierror.NotFound, http.StatusNotFound, "")
}

// forbidden adds a case that must get FORBIDDEN.
func (t *table) forbidden(what string, c call) {
	t.add(what, c, apierror.Forbidden, http.StatusForbidden, "")
}

func (t *table) notThere() {
	query, body := "/randomPath?goodsId="+t.noGoods, `{"goodsId":`+t.noGoods+`}`
	t.missing("no such goods", get("/sales/"+t.noGoods, ""))
	t.missing("no such goods", post(query, t.buyer))
	t.missing("no such goods", post("/"+t.Path+"/decrStock", t.buyer, body))
	t.missing("no such goods before a bad path", post("/x/decrStock", t.buyer, body))
	t.missing("no such goods before the role", post(query, t.merchant))
	for _, c := range t.saleCalls(t.noGoods) {
		t.missing("no such goods", c)
		c.who = t.buyer
		t.missing("no such goods before the role", c)
	}
	for _, sn := range append(nasty(), "0", "order-0", strings.Repeat("0", 58),
		strings.Repeat("v", 64), strings.Repeat("a", 65), t.OrderSn+"0", "中文", "%") {
		if strings.Contains(sn, "/") {
			continue
		}
		for _, c := range t.orderCalls(escape(sn), t.buyer) {
			t.missing("no such order "+sn, c)
		}
	}
	t.missing("no such order before the role", get("/orders/order-0", t.merchant))
}

func (t *table) notTheirs() {
	for _, c := range t.saleCalls(t.goods) {
		c.who = t.otherMerchant
		t.forbidden("another merchant's sale", c)
		c.body = `{"x":1}` // 400 comes before 403
		t.bad("another merchant's sale and a bad body", c, "x")
	}
	for _, c := range t.orderCalls(t.OrderSn, t.otherBuyer) {
		t.forbidden("another buyer's order", c)
		c.body = `{"x":1}`
		t.bad("another buyer's order and a bad body", c, "x")
	}
}

func (t *table) wrongRole() {
	for _, c := range t.saleCalls(t.goods) {
		c.who = t.buyer
		t.forbidden("a buyer", c)
	}
	const sales = "/admin/sales"
	t.forbidden("a buyer", get(sales, t.buyer))
	t.forbidden("a buyer", post(sales, t.buyer, NewSale("title", `"x"`)))
	t.bad("a buyer and a bad field", post(sales, t.buyer, NewSale("stock", "0")), "stock")
	for _, c := range append(t.orderCalls(t.OrderSn, t.merchant), get("/orders", t.merchant),
		post("/randomPath?goodsId="+t.goods, t.merchant),
		join(t.decr(t.merchant), "goodsId="+t.goods)) {
		t.forbidden("a merchant", c)
	}
}

func (t *table) badPaths() {
	decr := func(path, who, goods string) call {
		return post("/"+path+"/decrStock?goodsId="+goods, who)
	}
	refused := func(what string, c call) {
		t.add(what, c, apierror.BadPath, http.StatusForbidden, "")
	}
	refused("another buyer's path", decr(t.Path, t.otherBuyer, t.goods))
	refused("another goods' path", decr(t.Path, t.buyer, t.otherGoods))
	for _, p := range append(nasty(), "x", "0", t.Path[1:], t.Path+"0", strings.Repeat("A", 32),
		strings.Repeat("g", 32), strings.Repeat("0", 32), "admin") {
		if !strings.Contains(p, "/") {
			refused("path "+p, decr(escape(p), t.buyer, t.goods))
		}
	}
	bad := join(decr("x", t.buyer, t.goods), "decrStock=0")
	t.bad("a bad path and a bad quantity", bad, "decrStock")
}

// routes adds calls that do not exist, with and without a token.
func (t *table) routes() {
	sale := "/admin/sales/" + t.goods
	for _, target := range []string{
		"/nope", "//sales", "/sales/", "/sales//", "/SALES", "/orders/", "/orders//pay",
		"/randomPath/", "//decrStock", "/admin", "/admin/", "/admin/sales/", sale + "/",
		sale + "/expose/", "/../etc/passwd", "/%2e%2e/etc/passwd", "/.git/config", "/debug/pprof/",
		"/metrics", "/sales/1/2", "/livez/", "/%00", "/%ff", "/sales%2f1%2f2", "/orders/a%2fb%2fc",
	} {
		t.missing("no such call", get(target, ""))
		t.missing("no such call", post(target, t.buyer, "{}"))
	}
	for _, c := range []call{
		post("/sales", "", "{}"),
		{"PUT", "/sales/" + t.goods, t.merchant, "{}"},
		{"DELETE", "/orders/" + t.OrderSn, t.buyer, ""},
		{"DELETE", "/randomPath", t.buyer, ""},
		{"HEAD", "/randomPath", t.buyer, ""},
		get("/"+t.Path+"/decrStock", t.buyer),
		get("/orders/"+t.OrderSn+"/pay", t.buyer),
		{"OPTIONS", "/sales", "", ""},
		{"BREW", "/sales", "", ""},
		post("/livez", ""), post("/", t.buyer, "{}"),
		{"PUT", "/session", t.buyer, "{}"},
		{"TRACE", "/readyz", "", ""},
	} {
		t.add("no such method", c, "METHOD_NOT_ALLOWED", http.StatusMethodNotAllowed, "")
	}
}
