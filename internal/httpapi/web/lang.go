package web

import (
	"net/http"

	"golang.org/x/text/language"
)

// Lang is a language of the pages, as it is written in cookies, addresses and file names.
type Lang string

// The languages; the first is the default.
const (
	English Lang = "en"
	Chinese Lang = "zh"
)

// LangCookie is the cookie with a visitor's choice.
const LangCookie = "lang"

// Langs returns all languages.
func Langs() []Lang { return []Lang{English, Chinese} }

// Known reports whether the pages have the language.
func (l Lang) Known() bool { return l == English || l == Chinese }

// Tag is the language's tag in HTML (BCP 47).
func (l Lang) Tag() string {
	if l == Chinese {
		return "zh-Hans"
	}
	return "en"
}

// Name is the language's name in that language.
func (l Lang) Name() string {
	if l == Chinese {
		return "中文"
	}
	return "English"
}

// LangOf returns a request's language: the visitor's choice, else the best match of
// Accept-Language (RFC 9110, 12.5.4).
func LangOf(r *http.Request) Lang {
	if c, err := r.Cookie(LangCookie); err == nil && Lang(c.Value).Known() {
		return Lang(c.Value)
	}
	wanted, _, err := language.ParseAcceptLanguage(r.Header.Get("Accept-Language"))
	if err != nil {
		return English
	}
	_, i, _ := language.NewMatcher([]language.Tag{
		language.English, language.Chinese,
	}).Match(wanted...)
	return Langs()[i]
}
