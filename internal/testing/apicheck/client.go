package apicheck

import (
	"bytes"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"testing"
)

// Client returns an HTTP client that sends requests as the given client does. It fails the test on
// every round trip that the document does not contain. It is safe for concurrent use.
func Client(t testing.TB, client *http.Client) *http.Client {
	t.Helper()
	d, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	next := client.Transport
	if next == nil {
		next = http.DefaultTransport
	}
	checked := *client
	checked.Transport = &transport{document: d, next: next, report: func(err error) {
		t.Errorf("%v", err)
	}}
	return &checked
}

type transport struct {
	document *Document
	next     http.RoundTripper
	report   func(error)
}

// CloseIdleConnections closes those of the client that sends the requests.
func (t *transport) CloseIdleConnections() {
	(&http.Client{Transport: t.next}).CloseIdleConnections()
}

// RoundTrip sends the request and checks the round trip. It checks a stream's events as the test
// reads them.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	sent, req, err := bodyOf(req)
	if err != nil {
		return nil, err
	}
	res, err := t.next.RoundTrip(req)
	if err != nil {
		return res, err
	}
	x := RoundTrip{
		Method: req.Method, URL: req.URL, RequestHeader: req.Header, RequestBody: sent,
		Status: res.StatusCode, ResponseHeader: res.Header,
	}
	media, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type")) // "" is no JSON
	if isJSON(media) {
		x.ResponseBody, err = io.ReadAll(res.Body)
		_ = res.Body.Close()
		res.Body = io.NopCloser(io.MultiReader(bytes.NewReader(x.ResponseBody), failed{err}))
		if err != nil { // the test itself handles an interrupted transfer
			return res, nil
		}
	} else if media == "text/event-stream" {
		res.Body = &events{ReadCloser: res.Body, transport: t, schema: eventOf(req.URL.Path)}
	}
	if err := t.document.Check(x); err != nil {
		t.report(err)
	}
	return res, nil
}

// bodyOf reads a request's body. It returns a request that still has the body.
func bodyOf(req *http.Request) ([]byte, *http.Request, error) {
	if req.Body == nil || req.Body == http.NoBody {
		return nil, req, nil
	}
	sent, err := io.ReadAll(req.Body)
	_ = req.Body.Close()
	if err != nil {
		return nil, req, fmt.Errorf("read a request's body: %w", err)
	}
	again := req.Clone(req.Context())
	again.Body = io.NopCloser(bytes.NewReader(sent))
	return sent, again, nil
}

// failed is a reader that returns only an error.
type failed struct{ err error }

func (f failed) Read([]byte) (int, error) {
	if f.err != nil {
		return 0, f.err
	}
	return 0, io.EOF
}

// eventOf returns the schema of a stream's events.
func eventOf(path string) string {
	if strings.HasPrefix(path, "/admin/sales/") {
		return "/components/schemas/SaleEvent"
	}
	return "/components/schemas/Order"
}

// events is a stream that checks each data line against a schema.
type events struct {
	io.ReadCloser
	transport *transport
	schema    string
	line      []byte
}

func (e *events) Read(p []byte) (int, error) {
	n, err := e.ReadCloser.Read(p)
	for _, c := range p[:n] {
		if c != '\n' {
			e.line = append(e.line, c)
			continue
		}
		if data, is := bytes.CutPrefix(e.line, []byte("data: ")); is {
			if err := e.transport.document.schemas.check(e.schema, data); err != nil {
				e.transport.report(fmt.Errorf("event %.300q: not in openapi.yaml: %w", data, err))
			}
		}
		e.line = e.line[:0]
	}
	return n, err
}
