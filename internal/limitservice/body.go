package limitservice

import (
	"errors"
	"net/http"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"flashsale.dev/seckill/internal/ratelimit"
)

// read decodes a JSON body strictly: no unknown or repeated field, and nothing behind it.
func read(r *http.Request, into any) error {
	err := json.UnmarshalRead(r.Body, into, json.RejectUnknownMembers(true))
	if err == nil {
		return nil
	}
	field := ""
	if e, ok := errors.AsType[*json.SemanticError](err); ok {
		field = fieldOf(e.JSONPointer)
	} else if e, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		field = fieldOf(e.JSONPointer)
	}
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return ratelimit.BadField("body", "is larger than %d bytes", tooLarge.Limit)
	}
	return ratelimit.BadField(field, "the body must be a JSON object of the documented fields")
}

// fieldOf is the field that a pointer into the body names; "body" for all of it.
func fieldOf(p jsontext.Pointer) string {
	if field := p.LastToken(); field != "" {
		return field
	}
	return "body"
}
