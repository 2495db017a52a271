package params

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"

	"flashsale.dev/seckill/internal/apierror"
)

// MaxBody is the largest body of a call, in bytes.
const MaxBody = 64 << 10

// ReadBody returns the whole body of a request. A body of more bytes than limit is an error, and so
// is one that ends early.
func ReadBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	if r.ContentLength > limit {
		return nil, apierror.NewBadField("body", "is larger than %d bytes", limit)
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		return nil, apierror.NewBadField("body", "is larger than %d bytes", limit)
	}
	if err != nil {
		return nil, apierror.NewBadField("body", "could not be read to its end")
	}
	return body, nil
}

// ReadEncoded adds the fields of a body in the encoding that the header's Content-Type names. A
// body without a Content-Type is JSON. An empty body has no fields.
func (f *Fields) ReadEncoded(h http.Header, body []byte) error {
	if len(body) == 0 {
		return nil
	}
	if enc := h.Get("Content-Encoding"); enc != "" && !strings.EqualFold(enc, "identity") {
		return apierror.NewBadField("Content-Encoding", "is not understood")
	}
	values := h["Content-Type"]
	if len(values) == 0 {
		return f.readJSON(body)
	}
	media, args, err := mime.ParseMediaType(values[0])
	utf8Only := args["charset"] == "" || strings.EqualFold(args["charset"], "utf-8")
	switch {
	case err != nil || len(values) > 1 || !utf8Only:
		return unsupportedType()
	case media == "application/json":
		return f.readJSON(body)
	case media == "application/x-www-form-urlencoded" && body[0] != '{':
		// curl -d '{…}' sends JSON under this type; no form of ours begins with a brace.
		return f.readQuery(string(body), "body")
	default:
		return unsupportedType()
	}
}

func unsupportedType() error {
	return apierror.NewBadField("Content-Type", "must be application/json or "+
		"application/x-www-form-urlencoded, in UTF-8, and fit the body")
}
