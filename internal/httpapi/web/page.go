package web

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"strings"
	"time"

	"flashsale.dev/seckill/internal/apikey"
	"flashsale.dev/seckill/internal/event"
	"flashsale.dev/seckill/internal/seckill/salechange"
)

// Page is the data of a template, which calls its methods.
type Page struct {
	Name  string     // of the template
	Path  string     // of the request
	Query url.Values // of the request
	Lang  Lang
	User  User
	Now   time.Time // Redis' clock where it is known, else this node's
	Data  any       // depends on the template
	// Preview describes the page to search engines and to sites that show a link to it; nil for
	// none.
	Preview *Preview
	Policy  string // the Content-Security-Policy; "" for the usual one
	site    *Site
}

// Preview is what other sites show of a page beside a link to it.
type Preview struct {
	Title, Description string
	URL                string // of the page, absolute
	Image              string // URL of a picture, absolute; "" for none
}

// User is the visitor of a page.
type User struct {
	ID   string // "": not signed in
	Role string // buyer, merchant or operator
	Name string
}

// SignedIn reports whether the visitor has signed in.
func (u User) SignedIn() bool { return u.ID != "" }

// Sells reports whether the user may open the console.
func (u User) Sells() bool { return u.Role == "merchant" || u.Role == "operator" }

// Operates reports whether the user may open the operators' page.
func (u User) Operates() bool { return u.Role == "operator" }

// T returns a text in the page's language; pairs are placeholders and their values.
func (p Page) T(name string, pairs ...any) string {
	return p.site.words[p.Lang].format(name, pairs...)
}

// Title is the text of the browser's tab.
func (p Page) Title() string {
	switch {
	case p.Preview != nil:
		return p.Preview.Title + " · " + p.Brand()
	case p.Name == "shop":
		return p.Brand()
	case p.Name == "stop":
		return p.T(fmt.Sprintf("stop.%s", p.Data)) + " · " + p.Brand()
	case p.Name == "session" && p.User.SignedIn():
		return p.T("session.you", "name", p.User.Called(p)) + " · " + p.Brand()
	case p.Name == "order" || p.Name == "purchase":
		sn := fmt.Sprint(p.Data)
		if of, ok := p.Data.(Purchase); ok {
			sn = of.OrderSn
		}
		return p.T("title."+p.Name, "sn", p.Short(sn)) + " · " + p.Brand()
	}
	return p.T("title."+p.Name) + " · " + p.Brand()
}

// Other is the language that the page links to.
func (p Page) Other() Lang {
	if p.Lang == Chinese {
		return English
	}
	return Chinese
}

// OtherURL is the same page, with its query, in the other language.
func (p Page) OtherURL() string {
	query := url.Values{}
	maps.Copy(query, p.Query)
	query.Set("lang", string(p.Other()))
	return "?" + query.Encode()
}

// Asset returns the address of an asset.
func (p Page) Asset(name string) string { return AssetPath + p.site.assets.version + "/" + name }

// InConsole reports whether the page is one of the console.
func (p Page) InConsole() bool { return strings.HasPrefix(p.Path, "/console") }

// Styles are the page's style sheets.
func (p Page) Styles() []string {
	switch {
	case p.Name == "shop" || p.Name == "item":
		return []string{"style.css", "shop.css"}
	case p.InConsole():
		return []string{"style.css", "form.css", "console.css"}
	}
	return []string{"style.css", "form.css"}
}

// WordsFile is the script module with the texts of the page's scripts.
func (p Page) WordsFile() string { return wordsFile(p.Name, p.Lang) }

// Modules returns the addresses of the page's script and of all its imports, for preloading.
func (p Page) Modules() []string {
	names := []string{p.Asset(p.WordsFile())}
	for _, n := range p.site.assets.modules[p.Name] {
		names = append(names, p.Asset(n))
	}
	return names
}

// Scripted reports whether the page has a script.
func (p Page) Scripted() bool { _, ok := p.site.assets.byName[p.Name+".js"]; return ok }

// Money is the format of prices.
func (p Page) Money() Money { return p.site.money }

// Currency returns the installation's currency.
func (p Page) Currency() string { return p.site.code }

// Price formats an amount of a currency's smallest unit.
func (p Page) Price(amount int64, currency string) (string, error) {
	if currency == p.site.code {
		return p.site.money.Format(amount), nil
	}
	money, err := moneyOf(currency)
	return money.Format(amount), err
}

// Time formats a time for scripts.
func (p Page) Time(t time.Time) string { return event.FormatTime(t) }

// JSON encodes a value for scripts.
func (p Page) JSON(v any) (string, error) {
	text, err := json.Marshal(v)
	return string(text), err
}

// CardData is the data of a sale's card.
type CardData struct {
	Page  Page
	Sale  Sale
	Alone bool // on the sale's own page, which has the title already
}

// Card returns the data of the template "card".
func (p Page) Card(s Sale) CardData { return CardData{Page: p, Sale: s} }

// CardAlone returns the data of the template "card" on the sale's own page.
func (p Page) CardAlone(s Sale) CardData { return CardData{Page: p, Sale: s, Alone: true} }

// Any reports whether a sale is on or upcoming.
func (s SaleGroups) Any() bool { return len(s.Now)+len(s.Soon) > 0 }

// Purchase is the data of the page of one order for its buyer.
type Purchase struct {
	OrderSn   string
	Countries []string // choices of the address
}

// Short returns the end of an order number, which people compare. static/words.js must agree.
func (p Page) Short(orderSn string) string {
	if len(orderSn) <= 8 {
		return orderSn
	}
	end := orderSn[len(orderSn)-8:]
	return end[:4] + "-" + end[4:]
}

// SignIn is the data of the sign-in page.
type SignIn struct {
	Guests []User // offered without a token
	Issuer bool   // users sign in at an issuer, and not with a token
}

// Called returns the user's name, or the role and the id of a user without one.
func (u User) Called(p Page) string {
	if u.Name != "" {
		return u.Name
	}
	return p.T("role."+u.Role) + " " + u.ID
}

// Scopes are the choices of a new API key.
func (p Page) Scopes() []apikey.Scope { return apikey.Scopes() }

// AuditActions are the choices of the filter of the audit trail.
func (p Page) AuditActions() []salechange.Action { return salechange.Actions() }

// EventTypes are the choices of a webhook.
func (p Page) EventTypes() []event.Type { return event.Types() }

// DeliveryStates are the choices of the filter of a webhook's deliveries.
func (p Page) DeliveryStates() []string { return []string{"pending", "delivered", "dead"} }

// SalePhases are the choices of the filter of sales: phases, and statuses that have none.
func (p Page) SalePhases() []string {
	return []string{"ongoing", "sold_out", "upcoming", "draft", "ended", "closed"}
}

// SaleOrders are the orders in which a list shows sales.
func (p Page) SaleOrders() []string {
	return []string{"newest", "start", "title", "sold", "left", "revenue"}
}

// Statuses are the choices of the orders' filter.
func (p Page) Statuses() []string {
	return []string{"created", "paid", "cancelled", "expired", "failed"}
}
