package web

import (
	"net/http"

	"golang.org/x/text/language"
)

// Lang is a language of the pages, as it stands in cookies, addresses and file names.
type Lang string

// The languages, the one that is shown to everybody else first.
const (
	English Lang = "en"
	Chinese Lang = "zh"
)

// LangCookie keeps a visitor's choice.
const LangCookie = "lang"

// Langs are all of them.
func Langs() []Lang { return []Lang{English, Chinese} }

// Known tells whether there are pages in a language.
func (l Lang) Known() bool { return l == English || l == Chinese }

// Tag is the language as HTML names it (BCP 47).
func (l Lang) Tag() string {
	if l == Chinese {
		return "zh-Hans"
	}
	return "en"
}

// Name is the language's own name for itself.
func (l Lang) Name() string {
	if l == Chinese {
		return "中文"
	}
	return "English"
}

// LangOf is the language to answer a request in: the visitor's choice, else what the browser asks for (RFC 9110, 12.5.4).
func LangOf(r *http.Request) Lang {
	if c, err := r.Cookie(LangCookie); err == nil && Lang(c.Value).Known() {
		return Lang(c.Value)
	}
	wanted, _, err := language.ParseAcceptLanguage(r.Header.Get("Accept-Language"))
	if err != nil {
		return English
	}
	_, i, _ := language.NewMatcher([]language.Tag{language.English, language.Chinese}).Match(wanted...)
	return Langs()[i]
}
