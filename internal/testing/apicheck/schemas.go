package apicheck

import (
	"bytes"
	"fmt"
	"strings"
	"sync"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/routers"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// schemas holds the document's schemas, each compiled one time. kin-openapi compiles a schema for
// each value that it checks, which takes milliseconds. This type uses the same OpenAPI 3.1
// validator and keeps its compiled schemas.
type schemas struct {
	mu       sync.Mutex
	compiler *jsonschema.Compiler
	known    map[string]*jsonschema.Schema
}

const documentURL = "https://flashsale.dev/openapi.json"

func newSchemas(doc *openapi3.T) (*schemas, error) {
	text, err := doc.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("write openapi.yaml as JSON: %w", err)
	}
	whole, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("read openapi.yaml as JSON: %w", err)
	}
	s := &schemas{compiler: jsonschema.NewCompiler(), known: map[string]*jsonschema.Schema{}}
	s.compiler.DefaultDraft(jsonschema.Draft2020)
	s.compiler.AssertFormat()
	return s, s.compiler.AddResource(documentURL, whole)
}

// check validates JSON against the schema at a JSON pointer in the document.
func (s *schemas) check(pointer string, text []byte) error {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return fmt.Errorf("no JSON: %w", err)
	}
	schema, err := s.at(pointer)
	if err != nil {
		return err
	}
	return schema.Validate(value)
}

func (s *schemas) at(pointer string) (*jsonschema.Schema, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if schema, ok := s.known[pointer]; ok {
		return schema, nil
	}
	schema, err := s.compiler.Compile(documentURL + "#" + pointer)
	if err != nil {
		return nil, fmt.Errorf("compile %s: %w", pointer, err)
	}
	s.known[pointer] = schema
	return schema, nil
}

// pointerOf returns the JSON pointer to the schema of a JSON response.
func pointerOf(
	route *routers.Route, status, media string, found *openapi3.ResponseRef,
) string {
	content := "/content/" + strings.ReplaceAll(media, "/", "~1") + "/schema"
	if found.Ref != "" {
		return strings.TrimPrefix(found.Ref, "#") + content
	}
	escaped := strings.NewReplacer("~", "~0", "/", "~1").Replace(route.Path)
	escaped = strings.NewReplacer("{", "%7B", "}", "%7D").Replace(escaped)
	return "/paths/" + escaped + "/" + strings.ToLower(route.Method) + "/responses/" + status +
		content
}
