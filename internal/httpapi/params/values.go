package params

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// ID takes a decimal integer from 1 to 2^63-1. JSON clients may send it as a number or as a string,
// because a double cannot hold every id.
func (f *Fields) ID(name string) int64 {
	v := f.require(name)
	n, ok := Decimal(v.text)
	if !ok || n <= 0 || v.kind == boolean {
		f.Reject(name, "must be a decimal integer of 1 to 2^63-1")
	}
	return n
}

// Int takes an int64: a JSON number, or plain text outside of JSON.
func (f *Fields) Int(name string) int64 {
	v := f.require(name)
	n, ok := Decimal(v.text)
	if !ok || v.kind != number && v.kind != plain {
		f.Reject(name, "must be a whole number, written in digits")
	}
	return n
}

// IntOr takes an integer from low to high, or the default where the field is absent.
func (f *Fields) IntOr(name string, otherwise, low, high int64) int64 {
	if !f.Has(name) {
		return otherwise
	}
	n := f.Int(name)
	if n < low || n > high {
		f.Reject(name, "must be a whole number of %d to %d", low, high)
	}
	return n
}

// Decimal parses an int64 in its canonical form only: "+1", "01", "-0", "1.0" and "1e3" are not.
func Decimal(s string) (int64, bool) {
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil && (s == "0" || isDigit1to9(strings.TrimPrefix(s, "-")[0]))
}

func isDigit1to9(c byte) bool { return '1' <= c && c <= '9' }

// Float takes a number in JSON's notation.
func (f *Fields) Float(name string) float64 {
	v := f.require(name)
	x, err := strconv.ParseFloat(v.text, 64)
	if err != nil || v.kind != number && (v.kind != plain || !isJSONNumber(v.text)) {
		f.Reject(name, "must be a number")
	}
	return x
}

// FloatOr takes a number in JSON's notation, or the default where the field is absent.
func (f *Fields) FloatOr(name string, otherwise float64) float64 {
	if !f.Has(name) {
		return otherwise
	}
	return f.Float(name)
}

// isJSONNumber excludes what strconv accepts beyond JSON: "Inf", "0x1p-2", "1_0", ".5".
func isJSONNumber(s string) bool {
	v := jsontext.Value(s)
	return v.Kind() == '0' && v.IsValid()
}

// Text takes a string: a JSON string, or plain text outside of JSON.
func (f *Fields) Text(name string) string {
	v := f.require(name)
	if v.kind != quoted && v.kind != plain {
		f.Reject(name, "must be a string")
	}
	return v.text
}

// List takes strings: a JSON array, or a comma list outside of JSON.
func (f *Fields) List(name string) []string {
	v := f.require(name)
	if v.kind != array && v.kind != plain {
		f.Reject(name, "must be a list of strings")
	}
	if v.text == "" {
		return nil
	}
	return strings.Split(v.text, ",")
}

// OneOf takes one of the given words, or the default where the field is absent.
func OneOf[T ~string](f *Fields, name string, otherwise T, words ...T) T {
	if !f.Has(name) {
		return otherwise
	}
	s := T(f.Text(name))
	if !slices.Contains(words, s) {
		f.Reject(name, "must be one of %v", words)
	}
	return s
}

// Bool takes true or false: a JSON boolean, or these words outside of JSON.
func (f *Fields) Bool(name string) bool {
	v := f.require(name)
	if v.kind != boolean && v.kind != plain || v.text != "true" && v.text != "false" {
		f.Reject(name, "must be true or false")
	}
	return v.text == "true"
}

// Time takes an RFC 3339 time and cuts it to milliseconds, the precision of every stored time.
func (f *Fields) Time(name string) time.Time {
	v := f.require(name)
	t, err := time.Parse(time.RFC3339, v.text)
	if err != nil || !isStrictTime(v.text) || v.kind != quoted && v.kind != plain {
		f.Reject(name, "must be an RFC 3339 time, such as 2026-11-11T20:00:00Z")
	}
	return t.Truncate(time.Millisecond)
}

// isStrictTime excludes forms that time.Parse accepts beyond RFC 3339 (go.dev/issue/54580). They
// are an hour of one digit, a comma before the fraction, and an offset of 24 hours or 60 minutes.
func isStrictTime(s string) bool {
	zone, utc := strings.CutSuffix(s, "Z")
	if len(s) < len("2006-01-02T15:04:05Z") || s[13] != ':' || strings.Contains(s, ",") {
		return false
	}
	zone = zone[len(zone)-len("15:04"):]
	return utc || zone[:2] < "24" && zone[3:] < "60"
}

// Optional takes a field with one of the functions above, or returns nil where the field is absent.
func Optional[T any](f *Fields, name string, take func(name string) T) *T {
	if !f.Has(name) {
		return nil
	}
	return new(take(name))
}

// require returns a field, or records its absence. The caller may then reject the empty text as
// well, which has no effect: Reject keeps the first problem.
func (f *Fields) require(name string) field {
	if v := f.find(name); v != nil {
		return *v
	}
	f.Reject(name, "is missing")
	return field{}
}
