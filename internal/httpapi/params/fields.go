package params

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"flashsale.dev/seckill/internal/apierror"
)

// kind is the notation of a field's value. JSON types are kept apart: "1" is no number there.
type kind int

const (
	plain   kind = iota // path, query or form: text that may also be read as a number
	quoted              // JSON string
	number              // JSON number, in its original digits
	boolean             // JSON true or false
	array               // JSON array of strings, joined by commas
)

type field struct {
	name, text string
	kind       kind
}

// Fields holds the fields of one request. It is not safe for concurrent use.
type Fields struct {
	allowed  []string
	lists    []string // those that may be a JSON array
	objects  []string // of a JSON body, by their names
	fields   []field
	first    [3]field // room for the fields of a purchase
	problems apierror.Problems
}

// New returns an empty set that accepts the given names from a query or a body. Those in lists may
// be a list of strings. The name "x.*" accepts every member of the object x.
func New(allowed, lists []string) *Fields {
	f := &Fields{allowed: allowed, lists: lists}
	f.fields = f.first[:0]
	return f
}

// AddPath adds a parameter of the route's pattern. The router has matched it, so its name needs no
// check; its text may still be any bytes.
func (f *Fields) AddPath(name, text string) {
	if !utf8.ValidString(text) {
		f.Reject(name, "must be UTF-8")
	}
	f.fields = append(f.fields, field{name: name, text: text})
}

// Read adds the fields of the query and of the body. Unknown fields are no error yet: Err reports
// them.
func (f *Fields) Read(w http.ResponseWriter, r *http.Request) error {
	if err := f.readQuery(r.URL.RawQuery, "query"); err != nil {
		return err
	}
	if r.Body == nil || r.Body == http.NoBody {
		return nil
	}
	body, err := ReadBody(w, r, MaxBody)
	if err != nil {
		return err
	}
	return f.ReadEncoded(r.Header, body)
}

// Has reports whether the request has the field.
func (f *Fields) Has(name string) bool { return f.find(name) != nil }

// HasObject reports whether the request has the object, or one of its members.
func (f *Fields) HasObject(name string) bool {
	return slices.Contains(f.objects, name) || f.hasMember(name)
}

// hasMember reports whether the request has a member of the object.
func (f *Fields) hasMember(object string) bool {
	return slices.ContainsFunc(f.fields, func(v field) bool {
		return strings.HasPrefix(v.name, object+".")
	})
}

// Texts takes the members of an object, which must be strings.
func (f *Fields) Texts(object string) map[string]string {
	texts := map[string]string{}
	for _, v := range f.fields {
		if name, ok := strings.CutPrefix(v.name, object+"."); ok {
			texts[name] = f.Text(v.name)
		}
	}
	return texts
}

// Raw returns a field's original text, of any type; "" where it is absent.
func (f *Fields) Raw(name string) string {
	if v := f.find(name); v != nil {
		return v.text
	}
	return ""
}

// Canonical returns one line per field and per object, sorted. Two requests with the same fields
// have the same lines, independent of the fields' place and order. An empty object has no fields,
// and may still mean something: it removes all pairs of metadata.
func (f *Fields) Canonical() []string {
	lines := make([]string, 0, len(f.fields)+len(f.objects))
	for _, name := range f.objects {
		if !f.hasMember(name) {
			lines = append(lines, fmt.Sprintf("%q={}", name))
		}
	}
	for _, v := range f.fields {
		lines = append(lines, fmt.Sprintf("%q=%q", v.name, v.text))
	}
	slices.Sort(lines)
	return lines
}

// Err returns the problems of the values taken so far.
func (f *Fields) Err() error { return f.problems.Err() }

// Check adds the problems of an error about the values, and returns Err. It returns an error that
// names no field as it is.
func (f *Fields) Check(err error) error {
	if err := f.problems.Join(err); err != nil {
		return err
	}
	return f.Err()
}

// Reject records a problem with a field that has none yet.
func (f *Fields) Reject(name, format string, args ...any) {
	f.problems.Add(name, format, args...)
}

// maxFields bounds the fields of one request, because each is compared with all before it. It is
// more than any call has; an object with members of any name could have thousands.
const maxFields = 100

// maxUnknown bounds the unknown fields that are reported together, and so the time to compare their
// names.
const maxUnknown = 20

// unknown records a field that the call does not have. Err reports it with the problems of the
// others. Only the last of too many returns an error.
func (f *Fields) unknown(name string) error {
	f.Reject(printable(name), "is not a field of this call")
	if len(f.problems) >= maxUnknown {
		return f.Err()
	}
	return nil
}

// add checks a field against the allowed names and adds it.
func (f *Fields) add(v field) error {
	switch {
	case !utf8.ValidString(v.name) || !f.allows(v.name):
		return f.unknown(v.name)
	case f.find(v.name) != nil:
		return apierror.NewBadField(v.name, "is given twice")
	case len(f.fields) >= maxFields:
		return apierror.NewBadField(v.name, "is a field too many: at most %d are taken", maxFields)
	case !utf8.ValidString(v.text):
		return apierror.NewBadField(v.name, "is not valid UTF-8")
	}
	f.fields = append(f.fields, v)
	return nil
}

func (f *Fields) allows(name string) bool {
	object, _, isMember := strings.Cut(name, ".")
	return slices.Contains(f.allowed, name) ||
		isMember && slices.Contains(f.allowed, object+".*") && name != object+".*"
}

func (f *Fields) find(name string) *field {
	for i := range f.fields {
		if f.fields[i].name == name {
			return &f.fields[i]
		}
	}
	return nil
}

// readQuery reads name=value pairs in their order, which url.ParseQuery would lose: the first
// problem in the text must be the one that is reported.
func (f *Fields) readQuery(raw, where string) error {
	for pair := range strings.SplitSeq(raw, "&") {
		if pair == "" {
			continue
		}
		name, text, _ := strings.Cut(pair, "=")
		name, err := url.QueryUnescape(name)
		if err != nil || strings.Contains(pair, ";") { // some parsers take ";" for a separator
			return apierror.NewBadField(where, "is not well-formed")
		}
		if text, err = url.QueryUnescape(text); err != nil {
			return apierror.NewBadField(printable(name), "is not well-formed")
		}
		if err := f.add(field{name: name, text: text}); err != nil {
			return err
		}
	}
	return nil
}

// printable makes a caller's invented name safe to return: valid UTF-8 and at most 64 characters.
func printable(name string) string {
	name = strings.ToValidUTF8(name, "\uFFFD")
	if name == "" {
		return "query"
	}
	if runes := []rune(name); len(runes) > 64 {
		return string(runes[:64]) + "…"
	}
	return name
}
