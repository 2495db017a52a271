package web

import (
	"bytes"
	"fmt"
	"html/template"
)

// Policy is the Content-Security-Policy of every page: its own scripts, styles, pictures and calls, and nothing else.
const Policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// AssetPath is where assets live: AssetPath + version + "/" + name.
const AssetPath = "/assets/"

// Site is all pages, ready to be rendered.
type Site struct {
	pages  map[string]*template.Template
	words  map[Lang]Words
	assets *assets
	money  Money
}

// New reads what is embedded, and shows prices in a currency (ISO 4217).
func New(currency string) (*Site, error) {
	words, err := loadWords()
	if err != nil {
		return nil, err
	}
	money, err := moneyOf(currency)
	if err != nil {
		return nil, err
	}
	loaded, err := loadAssets(words)
	if err != nil {
		return nil, err
	}
	s := &Site{words: words, assets: loaded, money: money, pages: make(map[string]*template.Template)}
	for _, name := range []string{"shop", "session", "console", "sale", "operations", "stop"} {
		files := []string{"templates/layout.html", "templates/parts.html", "templates/" + name + ".html"}
		if s.pages[name], err = template.New("layout.html").ParseFS(templateFiles, files...); err != nil {
			return nil, fmt.Errorf("page %s: %w", name, err)
		}
	}
	return s, nil
}

// Render gives a page as HTML.
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

// Asset finds an asset by the version and the name in its address.
func (s *Site) Asset(version, name string) (Asset, bool) {
	if version != s.assets.version {
		return Asset{}, false
	}
	a, ok := s.assets.byName[name]
	return a, ok
}

// Words are the sentences of a language; not to be changed.
func (s *Site) Words(l Lang) Words { return s.words[l] }
