package web

import (
	"encoding/json"
	"strconv"
	"time"
)

// Page is what a template is filled with.
type Page struct {
	Name string // of the template
	Path string // of the address, for the language switch
	Lang Lang
	User User
	Now  time.Time // the server's clock: Redis' where it was asked
	Data any       // what the page is about
	site *Site
}

// User is who looks.
type User struct {
	ID   int64  // 0: nobody has signed in
	Role string // buyer, merchant or operator
	Name string
}

// SignedIn tells whether anybody has.
func (u User) SignedIn() bool { return u.ID != 0 }

// Sells tells whether the console is for this user.
func (u User) Sells() bool { return u.Role == "merchant" || u.Role == "operator" }

// Operates tells whether the operators' parts are.
func (u User) Operates() bool { return u.Role == "operator" }

// T is a sentence in the page's language.
func (p Page) T(name string, pairs ...any) string { return p.site.words[p.Lang].format(name, pairs...) }

// Title stands in the browser's tab.
func (p Page) Title() string { return p.T("title." + p.Name) }

// Other is the language to switch to.
func (p Page) Other() Lang {
	if p.Lang == Chinese {
		return English
	}
	return Chinese
}

// Asset is the address of an asset.
func (p Page) Asset(name string) string { return AssetPath + p.site.assets.version + "/" + name }

// Modules are the addresses of the scripts that the page's own one loads.
func (p Page) Modules() []string {
	names := append(p.site.assets.modules(p.Name+".js"), "words-"+string(p.Lang)+".js")
	for i, n := range names {
		names[i] = p.Asset(n)
	}
	return names
}

// Scripted tells whether the page has a script.
func (p Page) Scripted() bool { _, ok := p.site.assets.byName[p.Name+".js"]; return ok }

// Money is how prices are shown.
func (p Page) Money() Money { return p.site.money }

// Price is an amount of the currency's smallest unit, as people read it.
func (p Page) Price(amount int64) string { return p.site.money.Format(amount) }

// Time is a moment for machines.
func (p Page) Time(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// JSON is a value for scripts to read.
func (p Page) JSON(v any) (string, error) {
	text, err := json.Marshal(v)
	return string(text), err
}

// CardData is what the card of a sale is filled with.
type CardData struct {
	Page Page
	Sale Sale
}

// Card hands a sale to the card's template.
func (p Page) Card(s Sale) CardData { return CardData{p, s} }

// Any tells whether there is anything to buy, now or soon.
func (s SaleGroups) Any() bool { return len(s.Now)+len(s.Soon) > 0 }

// SignIn is what the sign-in page is about.
type SignIn struct {
	Guests []User // who may be signed in with one click
}

// Called is the user's name, or the role and the id of one who has none.
func (u User) Called(p Page) string {
	if u.Name != "" {
		return u.Name
	}
	return p.T("role."+u.Role) + " " + strconv.FormatInt(u.ID, 10)
}

// Statuses are those that orders may be filtered by.
func (p Page) Statuses() []string {
	return []string{"created", "paid", "cancelled", "expired", "failed"}
}
