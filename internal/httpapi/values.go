package httpapi

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"flashsale.dev/seckill/internal/seckill"
)

// bad gives the first complaint of the values taken so far.
func (p *params) bad() error { return p.wrong }

func (p *params) complain(name, format string, args ...any) {
	if p.wrong == nil {
		p.wrong = seckill.BadField(name, format, args...)
	}
}

// require finds a field, or complains of its absence.
func (p *params) require(name string) *field {
	f := p.find(name)
	if f == nil {
		p.complain(name, "is missing")
	}
	return f
}

// id takes a decimal int64 > 0, as text, a string or a number, written as we would write it.
func (p *params) id(name string) int64 {
	f := p.require(name)
	if f == nil {
		return 0
	}
	n, ok := decimal(f.text)
	if !ok || n <= 0 || f.kind == boolean {
		p.complain(name, "must be a decimal integer of 1 to 2^63-1")
	}
	return n
}

// integer takes a whole number of any size an int64 has: a JSON number or text outside of JSON.
func (p *params) integer(name string) int64 {
	f := p.require(name)
	if f == nil {
		return 0
	}
	n, ok := decimal(f.text)
	if !ok || f.kind != number && f.kind != bare {
		p.complain(name, "must be a whole number, written in digits")
	}
	return n
}

// integerOr takes a whole number of lo to hi, or the default where it is left out.
func (p *params) integerOr(name string, otherwise, lo, hi int64) int64 {
	if p.find(name) == nil {
		return otherwise
	}
	n := p.integer(name)
	if n < lo || n > hi {
		p.complain(name, "must be a whole number of %d to %d", lo, hi)
	}
	return n
}

// decimal reads an int64 in its one way of being written: 1.0, 1e3, 0x10, " 1", "+1", "01" and "-0" are others.
func decimal(s string) (int64, bool) {
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil && strconv.FormatInt(n, 10) == s
}

// float takes a number as JSON writes numbers, or the default where it is left out.
func (p *params) float(name string, otherwise float64) float64 {
	f := p.find(name)
	if f == nil {
		return otherwise
	}
	x, err := strconv.ParseFloat(f.text, 64)
	if err != nil || f.kind != number && (f.kind != bare || !jsonNumber(f.text)) {
		p.complain(name, "must be a number")
	}
	return x
}

// jsonNumber keeps out what strconv takes beside: "Inf", "0x1p-2", "1_0", ".5".
func jsonNumber(s string) bool {
	v := jsontext.Value(s)
	return v.Kind() == '0' && v.IsValid()
}

// text takes a string.
func (p *params) text(name string) string {
	f := p.require(name)
	if f == nil {
		return ""
	}
	if f.kind != quoted && f.kind != bare {
		p.complain(name, "must be a string")
	}
	return f.text
}

// oneOf takes one of some words, or the default where it is left out.
func (p *params) oneOf(name, otherwise string, words ...string) string {
	if p.find(name) == nil {
		return otherwise
	}
	s := p.text(name)
	if !slices.Contains(words, s) {
		p.complain(name, "must be one of %v", words)
	}
	return s
}

// moment takes an RFC 3339 time, to the millisecond, which is as fine as times are kept.
func (p *params) moment(name string) time.Time {
	f := p.require(name)
	if f == nil {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339, f.text)
	if err != nil || !strictTime(f.text) || f.kind != quoted && f.kind != bare {
		p.complain(name, "must be an RFC 3339 time, such as 2026-11-11T20:00:00Z")
	}
	return t.Truncate(time.Millisecond)
}

// strictTime refuses what time.Parse lets through beside RFC 3339: an hour of one digit, a comma before the
// fraction, an offset of 24 hours or 60 minutes (go.dev/issue/54580).
func strictTime(s string) bool {
	zone, utc := strings.CutSuffix(s, "Z")
	if len(s) < len("2006-01-02T15:04:05Z") || s[13] != ':' || strings.Contains(s, ",") {
		return false
	}
	zone = zone[len(zone)-len("15:04"):]
	return utc || zone[:2] < "24" && zone[3:] < "60"
}
