package config

import (
	"fmt"
	"net/url"
	"strings"
)

// Origins are the origins of pages that may call the API (the Fetch standard, "origin"): scheme,
// host and port.
type Origins []string

// UnmarshalText reads a comma list of origins. A browser compares them as texts, so a list with a
// path or a final slash would permit nobody, and is an error. So is a pattern: the library that
// compares them would let https://shop* permit the sites of other people.
func (o *Origins) UnmarshalText(text []byte) error {
	*o = nil
	for _, s := range split(string(text)) {
		if s == "" {
			continue
		}
		u, err := url.Parse(s)
		if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" ||
			strings.Contains(s, "*") || u.Scheme+"://"+strings.ToLower(u.Host) != s {
			return fmt.Errorf("%q is no origin such as https://shop.example.org", s)
		}
		*o = append(*o, s)
	}
	return nil
}
