package badrequests

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"flashsale.dev/seckill/internal/auth"
	"flashsale.dev/seckill/internal/seckill"
)

// table gathers cases for a fixture.
type table struct {
	Fixture
	goods, otherGoods, noGoods         string
	buyer, otherBuyer, merchant, other string // Authorization headers
	cases                              []Case
}

// Cases makes the whole table.
func Cases(f Fixture) ([]Case, error) {
	t := &table{
		Fixture: f, goods: strconv.FormatInt(f.GoodsID, 10),
		otherGoods: strconv.FormatInt(f.OtherGoods, 10), noGoods: strconv.FormatInt(f.NoGoods, 10),
	}
	if err := t.sign(); err != nil {
		return nil, err
	}
	t.tokens()
	t.identifiers()
	t.quantities()
	t.bodies()
	t.newSales()
	t.changes()
	t.pages()
	t.strangers()
	t.routes()
	return t.cases, nil
}

func (t *table) sign() error {
	tokens, err := auth.New(t.Secret, 0, time.Now)
	if err != nil {
		return fmt.Errorf("bad input: %w", err)
	}
	for _, s := range []struct {
		header *string
		actor  seckill.Actor
	}{{&t.buyer, t.Buyer}, {&t.otherBuyer, t.OtherBuyer}, {&t.merchant, t.Merchant}, {&t.other, t.OtherMerchant}} {
		token, err := tokens.Sign(s.actor, time.Hour)
		if err != nil {
			return fmt.Errorf("bad input: %w", err)
		}
		*s.header = "Bearer " + token
	}
	return nil
}

// call is one call of the API with good parameters.
type call struct {
	method, target string
	who            string // Authorization
	body           string // JSON
}

// calls are all that need a token, as their rightful callers would make them.
func (t *table) calls() []call {
	sale := "/admin/sales/" + t.goods
	return []call{
		{"POST", "/randomPath?goodsId=" + t.goods, t.buyer, ""},
		{"GET", "/randomPath?goodsId=" + t.goods, t.buyer, ""},
		{"POST", "/" + t.Path + "/decrStock", t.buyer, `{"goodsId":` + t.goods + `}`},
		{"GET", "/orders", t.buyer, ""},
		{"GET", "/orders/" + t.OrderSn, t.buyer, ""},
		{"POST", "/orders/" + t.OrderSn + "/pay", t.buyer, ""},
		{"POST", "/orders/" + t.OrderSn + "/cancel", t.buyer, ""},
		{"POST", "/admin/sales", t.merchant, NewSale("title", `"x"`)},
		{"GET", "/admin/sales", t.merchant, ""},
		{"GET", sale, t.merchant, ""},
		{"POST", sale + "/expose", t.merchant, ""},
		{"POST", sale + "/close", t.merchant, ""},
		{"GET", sale + "/ledger", t.merchant, ""},
		{"GET", sale + "/figures", t.merchant, ""},
		{"GET", sale + "/orders", t.merchant, ""},
		{"GET", sale + "/events", t.merchant, ""},
		{"PATCH", sale, t.merchant, `{"perBuyerLimit":2}`},
		{"DELETE", sale, t.merchant, ""},
		{"GET", sale + "/audit", t.merchant, ""},
	}
}

func (t *table) add(what string, c call, reason seckill.Reason, status int, field string) {
	h := http.Header{}
	if c.who != "" {
		h.Set("Authorization", c.who)
	}
	if c.body != "" {
		h.Set("Content-Type", "application/json")
	}
	t.cases = append(t.cases, Case{
		Name: fmt.Sprintf("%s: %s %.60s", what, c.method, c.target), Method: c.method, Target: c.target,
		Header: h, Body: c.body, Reason: reason, Status: status, Field: field,
	})
}

func (t *table) bad(what string, c call, field string) {
	t.add(what, c, seckill.BadRequest, http.StatusBadRequest, field)
}

// with changes the header of the case added last.
func (t *table) with(name string, values ...string) {
	t.cases[len(t.cases)-1].Header[name] = values
}

func escape(s string) string { return url.PathEscape(s) }

func join(c call, pair string) call {
	sep := "?"
	if u, err := url.Parse(c.target); err == nil && u.RawQuery != "" {
		sep = "&"
	}
	c.target += sep + pair
	return c
}
