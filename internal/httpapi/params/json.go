package params

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"flashsale.dev/seckill/internal/apierror"
)

// readJSON reads a body that must be one JSON object and nothing after it. The decoder itself
// rejects repeated names and broken UTF-8, as RFC 7493 demands; RFC 8259 leaves both open.
func (f *Fields) readJSON(body []byte) error {
	dec := jsontext.NewDecoder(bytes.NewBuffer(body))
	if kind := dec.PeekKind(); kind != '{' && kind != 0 {
		return apierror.NewBadField("body", "must be a JSON object")
	}
	if err := f.readObject(dec, ""); err != nil {
		return f.Check(jsonError(err))
	}
	if _, err := dec.ReadToken(); !errors.Is(err, io.EOF) {
		return apierror.NewBadField("body", "has something after its JSON object")
	}
	return nil
}

// readObject reads the members of an object. The prefix is "" or the name of the object and a dot.
func (f *Fields) readObject(dec *jsontext.Decoder, prefix string) error {
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	for dec.PeekKind() != '}' {
		name, err := dec.ReadToken()
		if err != nil {
			return err
		}
		// A dot in a member's name would let "rate.x" pass for the member x of the object rate.
		if strings.Contains(name.String(), ".") || !f.knows(prefix+name.String()) {
			err = errors.Join(f.unknown(prefix+name.String()), dec.SkipValue())
		} else {
			err = f.readMember(dec, prefix+name.String())
		}
		if err != nil {
			return err
		}
	}
	_, err := dec.ReadToken()
	return err
}

func (f *Fields) readMember(dec *jsontext.Decoder, name string) error {
	if f.isObject(name) {
		if dec.PeekKind() != '{' {
			return wrongType(dec, name)
		}
		f.objects = append(f.objects, name)
		return f.readObject(dec, name+".")
	}
	if slices.Contains(f.lists, name) && dec.PeekKind() == '[' {
		return f.readList(dec, name)
	}
	k, ok := kindOf(dec.PeekKind())
	if !ok {
		return wrongType(dec, name)
	}
	token, err := dec.ReadToken()
	if err != nil {
		return err
	}
	return f.add(field{name: name, text: token.String(), kind: k})
}

// readList reads an array of strings. An element with a comma would become two.
func (f *Fields) readList(dec *jsontext.Decoder, name string) error {
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	var all []string
	for dec.PeekKind() != ']' {
		if dec.PeekKind() != '"' {
			return wrongType(dec, name)
		}
		token, err := dec.ReadToken()
		if err != nil {
			return err
		}
		if strings.Contains(token.String(), ",") || token.String() == "" {
			return apierror.NewBadField(name, "has an element that is empty or has a comma")
		}
		all = append(all, token.String())
	}
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	return f.add(field{name: name, text: strings.Join(all, ","), kind: array})
}

// knows reports whether the call has a field, or an object with fields, of this name.
func (f *Fields) knows(name string) bool { return f.allows(name) || f.isObject(name) }

// isObject reports whether an allowed field is a member of the object with this name.
func (f *Fields) isObject(name string) bool {
	return slices.ContainsFunc(f.allowed, func(s string) bool {
		return len(s) > len(name) && s[len(name)] == '.' && s[:len(name)] == name
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

// wrongType reports a value of the wrong type, or the syntax error where there is no JSON value.
func wrongType(dec *jsontext.Decoder, name string) error {
	if dec.PeekKind() == 0 {
		_, err := dec.ReadToken()
		return err
	}
	return apierror.NewBadField(name, "has the wrong type")
}

// jsonError converts a decoder's error into one that names the field.
func jsonError(err error) error {
	if apierror.ReasonOf(err) != "" {
		return err
	}
	syntax, ok := errors.AsType[*jsontext.SyntacticError](err)
	if !ok || syntax.JSONPointer == "" {
		return apierror.NewBadField("body", "is not valid JSON in UTF-8")
	}
	name := printable(strings.Join(slices.Collect(syntax.JSONPointer.Tokens()), "."))
	if errors.Is(syntax, jsontext.ErrDuplicateName) {
		return apierror.NewBadField(name, "is given twice")
	}
	return apierror.NewBadField(name, "is not valid JSON in UTF-8")
}
