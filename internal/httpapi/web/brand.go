package web

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

// Brand is the shop's own name and logo. The zero value is the brand of the texts.
type Brand struct {
	Name string // "": that of the texts, which depends on the language
	logo string // name of the asset; "": the flash
	body []byte // of the logo
}

const (
	maxName = 40
	// maxLogo leaves the pages below 100 KB, without which they would be slow on phones.
	maxLogo = 8 << 10
)

// NewBrand returns a brand with the logo of a file; "" for none. The error says what is wrong with
// the name or the file.
func NewBrand(name, file string) (Brand, error) {
	b := Brand{Name: strings.TrimSpace(name)}
	if !utf8.ValidString(b.Name) || utf8.RuneCountInString(b.Name) > maxName {
		return b, fmt.Errorf("SECKILL_SHOP_NAME: has more than %d characters, or is not UTF-8",
			maxName)
	}
	if file == "" {
		return b, nil
	}
	ext := strings.ToLower(filepath.Ext(file))
	if !strings.HasPrefix(mediaType("logo"+ext), "image/") {
		return b, fmt.Errorf("SECKILL_SHOP_LOGO: %s is no .svg, .png, .jpg or .webp file", file)
	}
	body, err := os.ReadFile(file)
	if err != nil {
		return b, fmt.Errorf("SECKILL_SHOP_LOGO: %w", err)
	}
	if len(body) > maxLogo {
		return b, fmt.Errorf("SECKILL_SHOP_LOGO: %s has %d bytes, more than %d", file, len(body),
			maxLogo)
	}
	b.logo, b.body = "logo"+ext, body
	return b, nil
}

// Brand is the name of the shop.
func (p Page) Brand() string { return cmp.Or(p.site.brand.Name, p.T("brand")) }

// Logo is the address of the shop's logo; "" where it has none.
func (p Page) Logo() string {
	if p.site.brand.logo == "" {
		return ""
	}
	return p.Asset(p.site.brand.logo)
}
