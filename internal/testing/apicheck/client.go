package apicheck

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// loaded is the document, read once for all tests of a process: reading it takes a moment, and it
// does not change.
var loaded = sync.OnceValues(Load) //nolint:gochecknoglobals // a cache of what does not change

// Client gives a client that makes the same calls as the one given, and fails the test where an
// exchange is not in the document. It may be used by many goroutines.
func Client(t testing.TB, client *http.Client) *http.Client {
	t.Helper()
	d, err := loaded()
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

// RoundTrip makes the call and checks it. A stream's events are checked as they are read.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	sent, req, err := bodyOf(req)
	if err != nil {
		return nil, err
	}
	res, err := t.next.RoundTrip(req)
	if err != nil {
		return res, err
	}
	x := Exchange{
		Method: req.Method, URL: req.URL, Header: req.Header, Sent: sent,
		Status: res.StatusCode, Answer: res.Header,
	}
	if strings.HasPrefix(res.Header.Get("Content-Type"), "application/json") {
		x.Got, err = io.ReadAll(res.Body)
		_ = res.Body.Close()
		res.Body = io.NopCloser(io.MultiReader(bytes.NewReader(x.Got), failed{err}))
		if err != nil { // a transfer cut off is the reader's to judge
			return res, nil
		}
	} else if strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		res.Body = &events{ReadCloser: res.Body, transport: t, schema: eventOf(req.URL.Path)}
	}
	if err := t.document.Check(x); err != nil {
		t.report(err)
	}
	return res, nil
}

// bodyOf reads a request's body and gives a request that has it still.
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

// failed is a reader at its end, or at its error.
type failed struct{ err error }

func (f failed) Read([]byte) (int, error) {
	if f.err != nil {
		return 0, f.err
	}
	return 0, io.EOF
}

// eventOf is the schema of what a stream's events hold.
func eventOf(path string) string {
	if strings.HasPrefix(path, "/admin/sales/") {
		return "/components/schemas/SaleEvent"
	}
	return "/components/schemas/Order"
}

// events is a stream whose data lines are held against a schema.
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
