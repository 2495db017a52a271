package httpapi

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/gin-gonic/gin"

	"flashsale.dev/seckill/internal/seckill"
)

// maxBody is how large a body may be, in bytes.
const maxBody = 64 << 10

// kind is how a field was written.
type kind int

const (
	bare    kind = iota // in the path, the query or a form: text that may mean a number
	quoted              // a JSON string
	number              // a JSON number, as it was written
	boolean             // a JSON true or false
)

type field struct {
	name, text string
	kind       kind
}

// params are the fields of one request, wherever they stood: path, query, form or JSON body. Each may stand once.
// A handler takes what it needs (values.go) and then asks bad for the first complaint.
type params struct {
	allowed []string
	fields  []field
	wrong   error
}

// readParams reads every field of a request, or names the one that is unknown, doubled or no UTF-8, as a BadRequest.
func readParams(w http.ResponseWriter, r *http.Request, path gin.Params, allowed []string) (*params, error) {
	p := &params{allowed: allowed}
	for _, v := range path {
		p.fields = append(p.fields, field{name: v.Key, text: v.Value})
	}
	if err := p.readQuery(r.URL.RawQuery, "query"); err != nil {
		return nil, err
	}
	if r.Body == nil || r.Body == http.NoBody {
		return p, nil
	}
	body, err := readBody(w, r)
	if err != nil || len(body) == 0 {
		return p, err
	}
	return p, p.readBody(r.Header, body)
}

func (p *params) add(f field) error {
	switch {
	case !utf8.ValidString(f.name) || !slices.Contains(p.allowed, f.name):
		return seckill.BadField(printable(f.name), "is not a field of this call")
	case p.find(f.name) != nil:
		return seckill.BadField(f.name, "is given twice")
	case !utf8.ValidString(f.text):
		return seckill.BadField(f.name, "is not valid UTF-8")
	}
	p.fields = append(p.fields, f)
	return nil
}

func (p *params) find(name string) *field {
	for i := range p.fields {
		if p.fields[i].name == name {
			return &p.fields[i]
		}
	}
	return nil
}

// readQuery reads name=value pairs in the order in which they stand; url.ParseQuery would lose it.
func (p *params) readQuery(raw, where string) error {
	for pair := range strings.SplitSeq(raw, "&") {
		if pair == "" {
			continue
		}
		name, text, _ := strings.Cut(pair, "=")
		name, err := url.QueryUnescape(name)
		if err != nil || strings.Contains(pair, ";") { // a semicolon parts pairs for some and not for others
			return seckill.BadField(where, "is not well-formed")
		}
		if text, err = url.QueryUnescape(text); err != nil {
			return seckill.BadField(printable(name), "is not well-formed")
		}
		if err := p.add(field{name: name, text: text}); err != nil {
			return err
		}
	}
	return nil
}

func readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if r.ContentLength > maxBody {
		return nil, seckill.BadField("body", "is larger than %d bytes", maxBody)
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		return nil, seckill.BadField("body", "is larger than %d bytes", maxBody)
	}
	if err != nil {
		return nil, seckill.BadField("body", "could not be read to its end")
	}
	return body, nil
}

// readBody reads a body as what its Content-Type says; with none, as JSON.
func (p *params) readBody(h http.Header, body []byte) error {
	if enc := h.Get("Content-Encoding"); enc != "" && !strings.EqualFold(enc, "identity") {
		return seckill.BadField("Content-Encoding", "is not understood")
	}
	values := h["Content-Type"]
	if len(values) == 0 {
		return p.readJSON(body)
	}
	media, args, err := mime.ParseMediaType(values[0])
	utf8Only := args["charset"] == "" || strings.EqualFold(args["charset"], "utf-8")
	switch {
	case err != nil || len(values) > 1 || !utf8Only:
		return notAccepted()
	case media == "application/json":
		return p.readJSON(body)
	case media == "application/x-www-form-urlencoded" && body[0] != '{': // curl -d '{…}' says so of JSON
		return p.readQuery(string(body), "body")
	default:
		return notAccepted()
	}
}

func notAccepted() error {
	return seckill.BadField("Content-Type", "must be application/json or application/x-www-form-urlencoded, in UTF-8, and fit the body")
}

// printable makes a name that a caller invented fit to be answered: valid UTF-8 and short.
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
