package httpapi

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"flashsale.dev/seckill/internal/seckill"
)

// readJSON reads a body that must be one JSON object and nothing after it. The decoder refuses doubled names and
// broken UTF-8 itself (RFC 8259 leaves both open; RFC 7493 forbids them).
func (p *params) readJSON(body []byte) error {
	dec := jsontext.NewDecoder(bytes.NewBuffer(body))
	if kind := dec.PeekKind(); kind != '{' && kind != 0 {
		return seckill.BadField("body", "must be a JSON object")
	}
	if err := p.readObject(dec, ""); err != nil {
		return jsonTrouble(err)
	}
	if _, err := dec.ReadToken(); !errors.Is(err, io.EOF) {
		return seckill.BadField("body", "has something after its JSON object")
	}
	return nil
}

// readObject reads the members of an object whose names begin with a prefix: "" or "rate.".
func (p *params) readObject(dec *jsontext.Decoder, prefix string) error {
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	for dec.PeekKind() != '}' {
		name, err := dec.ReadToken()
		if err != nil {
			return err
		}
		if strings.Contains(name.String(), ".") { // dots join the names of nested fields, in the query and in complaints
			return seckill.BadField(printable(prefix+name.String()), "is not a field of this call")
		}
		if err := p.readMember(dec, prefix+name.String()); err != nil {
			return err
		}
	}
	_, err := dec.ReadToken()
	return err
}

func (p *params) readMember(dec *jsontext.Decoder, name string) error {
	if p.isGroup(name) {
		if dec.PeekKind() != '{' {
			return wrongType(dec, name)
		}
		return p.readObject(dec, name+".")
	}
	if !slices.Contains(p.allowed, name) {
		return p.add(field{name: name})
	}
	k, ok := kindOf(dec.PeekKind())
	if !ok {
		return wrongType(dec, name)
	}
	tok, err := dec.ReadToken()
	if err != nil {
		return err
	}
	return p.add(field{name: name, text: tok.String(), kind: k})
}

// isGroup tells whether a name is that of an object whose members are fields.
func (p *params) isGroup(name string) bool {
	return slices.ContainsFunc(p.allowed, func(f string) bool {
		return len(f) > len(name) && f[len(name)] == '.' && f[:len(name)] == name
	})
}

func kindOf(k jsontext.Kind) (kind, bool) {
	switch k {
	case '"':
		return quoted, true
	case '0':
		return number, true
	case 't', 'f':
		return boolean, true
	default:
		return 0, false
	}
}

// wrongType complains of a value's type, or of its syntax where it is not even JSON.
func wrongType(dec *jsontext.Decoder, name string) error {
	if dec.PeekKind() == 0 {
		_, err := dec.ReadToken()
		return err
	}
	return seckill.BadField(name, "has the wrong type")
}

// jsonTrouble names the place of a decoder's error.
func jsonTrouble(err error) error {
	if seckill.ReasonOf(err) != "" {
		return err
	}
	syntax, ok := errors.AsType[*jsontext.SyntacticError](err)
	if !ok || syntax.JSONPointer == "" {
		return seckill.BadField("body", "is not valid JSON in UTF-8")
	}
	place := printable(strings.Join(slices.Collect(syntax.JSONPointer.Tokens()), "."))
	if errors.Is(syntax, jsontext.ErrDuplicateName) {
		return seckill.BadField(place, "is given twice")
	}
	return seckill.BadField(place, "is not valid JSON in UTF-8")
}
