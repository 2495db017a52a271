package badrequests

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"flashsale.dev/seckill/internal/apierror"
	"flashsale.dev/seckill/internal/auth"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/testing/apicheck"
)

// table collects cases for a fixture.
type table struct {
	Fixture
	goods, otherGoods, noGoods string // the fixture's ids as text
	// The callers, as values of the header Authorization.
	buyer, otherBuyer, merchant, otherMerchant, operator string
	document                                             *apicheck.Document
	cases                                                []Case
}

// Cases returns all cases for a fixture.
func Cases(f Fixture) ([]Case, error) {
	t := &table{
		Fixture: f, goods: strconv.FormatInt(f.GoodsID, 10),
		otherGoods: strconv.FormatInt(f.OtherGoods, 10), noGoods: strconv.FormatInt(f.NoGoods, 10),
	}
	document, err := apicheck.Load()
	if err != nil {
		return nil, err
	}
	t.document = document
	if err := t.sign(); err != nil {
		return nil, err
	}
	t.tokens()
	t.identifiers()
	t.quantities()
	t.codes()
	t.bodies()
	t.newSales()
	t.changes()
	t.apiKeys()
	t.backOffice()
	t.sessions()
	t.pages()
	t.strangers()
	t.routes()
	return t.cases, t.callbacks()
}

// sign signs a token for each caller.
func (t *table) sign() error {
	tokens, err := auth.New(t.Secret, 0, time.Now)
	if err != nil {
		return fmt.Errorf("bad input: %w", err)
	}
	for header, who := range map[*string]seckill.Actor{
		&t.buyer: t.Buyer, &t.otherBuyer: t.OtherBuyer,
		&t.merchant: t.Merchant, &t.otherMerchant: t.OtherMerchant,
		&t.operator: {ID: "1", Role: seckill.Operator},
	} {
		token, err := tokens.Sign(who, time.Hour)
		if err != nil {
			return fmt.Errorf("bad input: %w", err)
		}
		*header = "Bearer " + token
	}
	return nil
}

// call is one API call with valid parameters.
type call struct {
	method, target string
	who            string // Authorization header
	body           string // JSON
}

func get(target, who string) call { return call{http.MethodGet, target, who, ""} }

func post(target, who string, body ...string) call {
	return call{http.MethodPost, target, who, strings.Join(body, "")}
}

// decr returns a call of decrStock without its fields.
func (t *table) decr(who string) call { return post("/"+t.Path+"/decrStock", who) }

// calls returns all calls that need a token, with the right caller.
func (t *table) calls() []call {
	return slices.Concat([]call{
		post("/randomPath?goodsId="+t.goods, t.buyer), get("/randomPath?goodsId="+t.goods, t.buyer),
		post("/"+t.Path+"/decrStock", t.buyer, `{"goodsId":`+t.goods+`}`), get("/orders", t.buyer),
		post("/admin/sales", t.merchant, NewSale("title", `"x"`)), get("/admin/sales", t.merchant),
		post("/admin/api-keys", t.merchant, newAPIKey("", "")), get("/admin/api-keys", t.merchant),
	}, t.orderCalls(t.OrderSn, t.buyer), t.saleCalls(t.goods))
}

// saleCalls returns the calls on one sale by its merchant.
func (t *table) saleCalls(goods string) []call {
	sale := "/admin/sales/" + goods
	return []call{
		get(sale, t.merchant), post(sale+"/expose", t.merchant), post(sale+"/close", t.merchant),
		get(sale+"/ledger", t.merchant), get(sale+"/figures", t.merchant),
		get(sale+"/orders", t.merchant), get(sale+"/events", t.merchant),
		get(sale+"/audit", t.merchant), get("/admin/audit?goodsId="+goods, t.merchant),
		{"PATCH", sale, t.merchant, ""},
		{"DELETE", sale, t.merchant, ""},
	}
}

// orderCalls returns the calls on one order.
func (t *table) orderCalls(sn, who string) []call {
	order := "/orders/" + sn
	return []call{
		get(order, who), post(order+"/pay", who), post(order+"/cancel", who),
		{
			"PUT", order + "/shipping", who,
			`{"name":"Ann Lee","line1":"1 High Street","city":"London","country":"GB"}`,
		},
	}
}

// add adds a case. what says what is wrong; field is data.field of a BAD_REQUEST, else "".
func (t *table) add(what string, c call, reason apierror.Reason, status int, field string) {
	h := http.Header{}
	if c.who != "" {
		h.Set("Authorization", c.who)
	}
	if c.body != "" {
		h.Set("Content-Type", "application/json")
	}
	t.cases = append(t.cases, Case{
		Name: fmt.Sprintf("%s: %s %.60s", what, c.method, c.target), Method: c.method,
		Target: c.target, Header: h, Body: c.body, Reason: reason, Status: status, Field: field,
	})
}

// bad adds a case that must get BAD_REQUEST with the field.
func (t *table) bad(what string, c call, field string) {
	t.add(what, c, apierror.BadRequest, http.StatusBadRequest, field)
}

const formType = "application/x-www-form-urlencoded"

// form adds a purchase with a form as its body, which must get BAD_REQUEST with the field.
func (t *table) form(what, body, field string) {
	c := t.decr(t.buyer)
	c.body = body
	t.bad(what, c, field)
	t.with("Content-Type", formType)
}

// with sets a header of the case that was added last.
func (t *table) with(name string, values ...string) {
	t.cases[len(t.cases)-1].Header[name] = values
}

func escape(s string) string { return url.PathEscape(s) }

// join returns a call with another name=value pair in its query.
func join(c call, pair string) call {
	separator := "?"
	if strings.Contains(c.target, "?") {
		separator = "&"
	}
	c.target += separator + pair
	return c
}
