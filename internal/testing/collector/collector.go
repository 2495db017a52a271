// Package collector is an OTLP receiver in the process, for tests: it keeps the spans that it is told.
package collector

import (
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"

	collected "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	told "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// Span is what tests look at.
type Span struct {
	Service, Name     string
	Trace, ID, Parent string   // hex
	Links             []string // traces
	Error             string   // the status' message, of a span that failed
	Attributes        map[string]string
}

// Collector takes spans.
type Collector struct {
	server *httptest.Server
	mu     sync.Mutex
	spans  []Span
}

// Start opens a collector on loopback.
func Start() *Collector {
	c := &Collector{}
	c.server = httptest.NewServer(http.HandlerFunc(c.take))
	return c
}

// URL is what SECKILL_OTLP_ENDPOINT may be set to.
func (c *Collector) URL() string { return c.server.URL }

// Close ends it.
func (c *Collector) Close() { c.server.Close() }

// Spans lists what has been told.
func (c *Collector) Spans() []Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]Span(nil), c.spans...)
}

// Named lists the spans of a name.
func (c *Collector) Named(name string) []Span {
	var found []Span
	for _, s := range c.Spans() {
		if s.Name == name {
			found = append(found, s)
		}
	}
	return found
}

func (c *Collector) take(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var request collected.ExportTraceServiceRequest
	if err != nil || r.URL.Path != "/v1/traces" || proto.Unmarshal(body, &request) != nil {
		http.Error(w, "not OTLP", http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, of := range request.GetResourceSpans() {
		service := ""
		for _, a := range of.GetResource().GetAttributes() {
			if a.GetKey() == "service.name" {
				service = a.GetValue().GetStringValue()
			}
		}
		for _, scope := range of.GetScopeSpans() {
			for _, s := range scope.GetSpans() {
				c.spans = append(c.spans, span(service, s))
			}
		}
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
}

func span(service string, s *told.Span) Span {
	one := Span{
		Service: service, Name: s.GetName(), Trace: hex.EncodeToString(s.GetTraceId()), ID: hex.EncodeToString(s.GetSpanId()),
		Parent: hex.EncodeToString(s.GetParentSpanId()), Attributes: map[string]string{},
	}
	for _, l := range s.GetLinks() {
		one.Links = append(one.Links, hex.EncodeToString(l.GetTraceId()))
	}
	if s.GetStatus().GetCode() == told.Status_STATUS_CODE_ERROR {
		one.Error = s.GetStatus().GetMessage()
	}
	for _, a := range s.GetAttributes() {
		one.Attributes[a.GetKey()] = a.GetValue().GetStringValue()
	}
	return one
}
