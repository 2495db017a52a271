package badrequests

import (
	"net/http"
	"strings"

	"flashsale.dev/seckill/internal/seckill"
)

// strangers are well-formed requests for what is not there, or not the caller's.
func (t *table) strangers() {
	t.notThere()
	t.notTheirs()
	t.wrongRole()
	t.badPaths()
}

func (t *table) missing(what string, c call) {
	t.add(what, c, seckill.NotFound, http.StatusNotFound, "")
}

func (t *table) forbidden(what string, c call) {
	t.add(what, c, seckill.Forbidden, http.StatusForbidden, "")
}

func (t *table) notThere() {
	t.missing("no such goods", call{"GET", "/sales/" + t.noGoods, "", ""})
	t.missing("no such goods", call{"POST", "/randomPath?goodsId=" + t.noGoods, t.buyer, ""})
	t.missing("no such goods", call{"POST", "/" + t.Path + "/decrStock", t.buyer, `{"goodsId":` + t.noGoods + `}`})
	t.missing("no such goods before a bad path", call{"POST", "/x/decrStock", t.buyer, `{"goodsId":` + t.noGoods + `}`})
	t.missing("no such goods before the role", call{"POST", "/randomPath?goodsId=" + t.noGoods, t.merchant, ""})
	for _, c := range t.saleCalls(t.noGoods) {
		t.missing("no such goods", c)
		c.who = t.buyer
		t.missing("no such goods before the role", c)
	}
	for _, sn := range append(nasty(), "0", "order-0", strings.Repeat("0", 58), strings.Repeat("v", 64), strings.Repeat("a", 65), t.OrderSn+"0", "中文", "%") {
		if strings.Contains(sn, "/") {
			continue
		}
		t.missing("no such order "+sn, call{"GET", "/orders/" + escape(sn), t.buyer, ""})
		t.missing("no such order "+sn, call{"POST", "/orders/" + escape(sn) + "/pay", t.buyer, ""})
		t.missing("no such order "+sn, call{"POST", "/orders/" + escape(sn) + "/cancel", t.buyer, ""})
	}
	t.missing("no such order before the role", call{"GET", "/orders/order-0", t.merchant, ""})
}

func (t *table) saleCalls(goods string) []call {
	sale := "/admin/sales/" + goods
	return []call{
		{"GET", sale, t.merchant, ""},
		{"POST", sale + "/expose", t.merchant, ""},
		{"POST", sale + "/close", t.merchant, ""},
		{"GET", sale + "/ledger", t.merchant, ""},
		{"GET", sale + "/figures", t.merchant, ""},
		{"GET", sale + "/orders", t.merchant, ""},
		{"GET", sale + "/events", t.merchant, ""},
		{"PATCH", sale, t.merchant, ""},
		{"DELETE", sale, t.merchant, ""},
		{"GET", sale + "/audit", t.merchant, ""},
	}
}

func (t *table) orderCalls() []call {
	return []call{
		{"GET", "/orders/" + t.OrderSn, t.otherBuyer, ""},
		{"POST", "/orders/" + t.OrderSn + "/pay", t.otherBuyer, ""},
		{"POST", "/orders/" + t.OrderSn + "/cancel", t.otherBuyer, ""},
	}
}

func (t *table) notTheirs() {
	for _, c := range t.saleCalls(t.goods) {
		c.who = t.other
		t.forbidden("another merchant's sale", c)
		c.body = `{"x":1}` // 400 comes before 403
		t.bad("another merchant's sale and a bad body", c, "x")
	}
	for _, c := range t.orderCalls() {
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
	t.forbidden("a buyer", call{"GET", "/admin/sales", t.buyer, ""})
	t.forbidden("a buyer", call{"POST", "/admin/sales", t.buyer, NewSale("title", `"x"`)})
	t.bad("a buyer and a bad field", call{"POST", "/admin/sales", t.buyer, NewSale("stock", "0")}, "stock")
	for _, c := range t.orderCalls() {
		c.who = t.merchant
		t.forbidden("a merchant", c)
	}
	t.forbidden("a merchant", call{"GET", "/orders", t.merchant, ""})
	t.forbidden("a merchant", call{"POST", "/randomPath?goodsId=" + t.goods, t.merchant, ""})
	t.forbidden("a merchant", call{"POST", "/" + t.Path + "/decrStock?goodsId=" + t.goods, t.merchant, ""})
}

func (t *table) badPaths() {
	decr := func(path, who, goods string) call {
		return call{"POST", "/" + path + "/decrStock?goodsId=" + goods, who, ""}
	}
	refused := func(what string, c call) { t.add(what, c, seckill.BadPath, http.StatusForbidden, "") }
	refused("another buyer's path", decr(t.Path, t.otherBuyer, t.goods))
	refused("another goods' path", decr(t.Path, t.buyer, t.otherGoods))
	for _, p := range append(nasty(), "x", "0", t.Path[1:], t.Path+"0", strings.ToUpper(strings.Repeat("a", 32)), strings.Repeat("g", 32), strings.Repeat("0", 32), "admin") {
		if !strings.Contains(p, "/") {
			refused("path "+p, decr(escape(p), t.buyer, t.goods))
		}
	}
	t.bad("a bad path and a bad quantity", join(decr("x", t.buyer, t.goods), "decrStock=0"), "decrStock")
}

// routes are calls that there are not, with and without a token.
func (t *table) routes() {
	for _, target := range []string{
		"/nope", "//sales", "/sales/", "/sales//", "/SALES", "/orders/", "/orders//pay", "/randomPath/", "//decrStock", "/admin", "/admin/",
		"/admin/sales/", "/admin/sales/" + t.goods + "/", "/admin/sales/" + t.goods + "/expose/", "/../etc/passwd", "/%2e%2e/etc/passwd",
		"/.git/config", "/debug/pprof/", "/metrics", "/sales/1/2", "/livez/", "/%00", "/%ff", "/sales%2f1%2f2", "/orders/a%2fb%2fc",
	} {
		t.missing("no such call", call{"GET", target, "", ""})
		t.missing("no such call", call{"POST", target, t.buyer, "{}"})
	}
	for _, c := range []call{
		{"POST", "/sales", "", "{}"},
		{"PUT", "/sales/" + t.goods, t.merchant, "{}"},
		{"DELETE", "/orders/" + t.OrderSn, t.buyer, ""},
		{"DELETE", "/randomPath", t.buyer, ""},
		{"HEAD", "/randomPath", t.buyer, ""},
		{"GET", "/" + t.Path + "/decrStock", t.buyer, ""},
		{"GET", "/orders/" + t.OrderSn + "/pay", t.buyer, ""},
		{"OPTIONS", "/sales", "", ""},
		{"BREW", "/sales", "", ""},
		{"POST", "/livez", "", ""},
		{"POST", "/", t.buyer, "{}"},
		{"PUT", "/session", t.buyer, "{}"},
		{"TRACE", "/readyz", "", ""},
	} {
		t.add("no such method", c, "METHOD_NOT_ALLOWED", http.StatusMethodNotAllowed, "")
	}
}
