// Package collector is an in-process OTLP receiver for tests. It stores all received spans.
package collector

import (
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"

	collectorpb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// Span holds the fields of a span that tests read.
type Span struct {
	Service, Name     string
	Trace, ID, Parent string   // hex
	Links             []string // trace IDs
	Error             string   // the status' message of a failed span
	Attributes        map[string]string
}

// Collector receives spans at /v1/traces.
type Collector struct {
	server *httptest.Server
	mu     sync.Mutex
	spans  []Span
}

// Start opens a collector on loopback.
func Start() *Collector {
	c := &Collector{}
	c.server = httptest.NewServer(http.HandlerFunc(c.receive))
	return c
}

// URL returns a value for SECKILL_OTLP_ENDPOINT.
func (c *Collector) URL() string { return c.server.URL }

// Close stops the server.
func (c *Collector) Close() { c.server.Close() }

// Spans returns the received spans.
func (c *Collector) Spans() []Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.spans)
}

// Named returns the received spans with a name.
func (c *Collector) Named(name string) []Span {
	var found []Span
	for _, s := range c.Spans() {
		if s.Name == name {
			found = append(found, s)
		}
	}
	return found
}

func (c *Collector) receive(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var request collectorpb.ExportTraceServiceRequest
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

func span(service string, s *tracepb.Span) Span {
	one := Span{
		Service: service, Name: s.GetName(), Trace: hex.EncodeToString(s.GetTraceId()),
		ID:     hex.EncodeToString(s.GetSpanId()),
		Parent: hex.EncodeToString(s.GetParentSpanId()), Attributes: map[string]string{},
	}
	for _, l := range s.GetLinks() {
		one.Links = append(one.Links, hex.EncodeToString(l.GetTraceId()))
	}
	if s.GetStatus().GetCode() == tracepb.Status_STATUS_CODE_ERROR {
		one.Error = s.GetStatus().GetMessage()
	}
	for _, a := range s.GetAttributes() {
		one.Attributes[a.GetKey()] = a.GetValue().GetStringValue()
	}
	return one
}
