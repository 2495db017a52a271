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

// pagesOf returns the templates of pages, by the folder with the texts that they have beside the
// shared ones; "" for none.
func pagesOf() map[string][]string {
	return map[string][]string{
		"":     {"shop", "item", "session", "stop", "purchase"},
		"draw": {"draw"},
		"console": {
			"console", "sale", "operations", "order", "keys", "webhooks", "webhook", "audit",
		},
	}
}

// merge returns the texts of both; the maps stay as they are.
func merge(a, b Words) Words {
	both := make(Words, len(a)+len(b))
	maps.Copy(both, a)
	maps.Copy(both, b)
	return both
}

// New parses the embedded files. Prices are in the given currency (ISO 4217). An unknown currency
// is an error.
func New(currency string, brand Brand) (*Site, error) {
	shared, err := loadWords("words")
	if err != nil {
		return nil, err
	}
	money, err := moneyOf(currency)
	if err != nil {
		return nil, err
	}
	all := map[Lang]Words{}
	byPage := make(map[string]map[Lang]Words)
	for folder, pages := range pagesOf() {
		words := shared
		if folder != "" {
			if words, err = loadWords("words/" + folder); err != nil {
				return nil, err
			}
		}
		for _, l := range Langs() {
			all[l] = merge(all[l], words[l])
		}
		for _, name := range pages {
			byPage[name] = make(map[Lang]Words)
			for _, l := range Langs() {
				byPage[name][l] = merge(shared[l], words[l])
			}
		}
	}
	loaded, err := loadAssets(byPage, brand)
	if err != nil {
		return nil, err
	}
	s := &Site{
		words: all, assets: loaded, money: money, code: currency, brand: brand,
		pages: make(map[string]*template.Template),
	}
	for name := range byPage {
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
