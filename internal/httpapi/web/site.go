package web

import (
	"bytes"
	"fmt"
	"html/template"
	"maps"
)

// Policy is the Content-Security-Policy of every page: it allows this site's files and calls only.
const Policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; " +
	"connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// AssetPath starts the address of an asset: AssetPath + version + "/" + name.
const AssetPath = "/assets/"

// Site holds the parsed templates, texts and assets. It is safe for concurrent use.
type Site struct {
	pages  map[string]*template.Template
	words  map[Lang]Words
	assets *assets
	money  Money
	code   string // of the currency
	brand  Brand
}

// New parses the embedded files. Prices are in the given currency (ISO 4217). An unknown currency
// is an error.
func New(currency string, brand Brand) (*Site, error) {
	groups := make(map[string]map[Lang]Words)
	for group, folder := range map[string]string{
		shared: "words", ofConsole: "words/console", ofDraw: "words/draw",
	} {
		words, err := loadWords(folder)
		if err != nil {
			return nil, err
		}
		groups[group] = words
	}
	money, err := moneyOf(currency)
	if err != nil {
		return nil, err
	}
	loaded, err := loadAssets(groups, brand)
	if err != nil {
		return nil, err
	}
	words := make(map[Lang]Words)
	for _, l := range Langs() {
		words[l] = make(Words)
		for _, group := range groups {
			maps.Copy(words[l], group[l])
		}
	}
	s := &Site{
		words: words, assets: loaded, money: money, code: currency, brand: brand,
		pages: make(map[string]*template.Template),
	}
	for _, name := range []string{
		"shop", "item", "session", "console", "sale", "operations", "order", "keys", "webhooks",
		"webhook", "audit", "stop", "purchase", "draw",
	} {
		s.pages[name], err = template.ParseFS(files,
			"templates/layout.html", "templates/parts.html", "templates/"+name+".html")
		if err != nil {
			return nil, fmt.Errorf("page %s: %w", name, err)
		}
	}
	return s, nil
}

// Currency returns the code of New.
func (s *Site) Currency() string { return s.code }

// Render returns a page as HTML. An unknown name of a page is an error.
func (s *Site) Render(p Page) ([]byte, error) {
	t, ok := s.pages[p.Name]
	if !ok {
		return nil, fmt.Errorf("there is no page %q", p.Name)
	}
	p.site = s
	var out bytes.Buffer
	if err := t.Execute(&out, p); err != nil {
		return nil, fmt.Errorf("render page %s: %w", p.Name, err)
	}
	return out.Bytes(), nil
}

// Asset returns an asset by the version and the name of its address. It reports false for an older
// version, whose contents may differ.
func (s *Site) Asset(version, name string) (Asset, bool) {
	if version != s.assets.version {
		return Asset{}, false
	}
	a, ok := s.assets.byName[name]
	return a, ok
}

// Words returns the texts of a language. Callers must not change them.
func (s *Site) Words(l Lang) Words { return s.words[l] }
