// Command generate writes api.ts, the types of the API for TypeScript, from the OpenAPI document.
//
//	generate DOCUMENT OUTPUT
package main

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

func main() {
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(document, output string) error {
	raw, err := os.ReadFile(document)
	if err != nil {
		return err
	}
	var root yaml.Node
	if err := yaml.Unmarshal(raw, &root); err != nil {
		return err
	}
	g := &generator{doc: root.Content[0]}
	g.line("// Code generated from api/openapi.yaml; DO NOT EDIT.\n")
	for name, schema := range members(child(g.doc, "components", "schemas")) {
		g.line("%sexport type %s = %s;\n", comment(schema, ""), name, g.schema(schema, ""))
	}
	g.operations()
	return os.WriteFile(output, g.out.Bytes(), 0o644) //nolint:gosec // source code
}

// generator writes the types of one document. Its methods query, body, answer, schema and object
// return TypeScript types as text.
type generator struct {
	doc *yaml.Node // the root mapping of the OpenAPI document
	out bytes.Buffer
}

func (g *generator) line(format string, args ...any) {
	fmt.Fprintf(&g.out, format+"\n", args...)
}

// operations writes one member for each call that takes and returns JSON.
func (g *generator) operations() {
	g.line("/** Every call: its method, its path, its query, its JSON body and the data of its answer. */")
	g.line("export interface Operations {")
	for path, item := range members(child(g.doc, "paths")) {
		for method, op := range members(item) {
			if method == "parameters" {
				continue
			}
			if data := g.answer(op); data != "" {
				g.line("  %s: { method: '%s'; path: '%s'; query: %s; body: %s; data: %s };",
					text(op, "operationId"), strings.ToUpper(method), path, g.query(op), g.body(op),
					data)
			}
		}
	}
	g.line("}")
}

// answer returns the type of the data in a call's JSON answer; "" if the answer is no JSON.
func (g *generator) answer(op *yaml.Node) string {
	for _, status := range []string{"200", "201", "202"} {
		response := g.resolve(child(op, "responses", status))
		schema := child(response, "content", "application/json", "schema")
		if schema == nil {
			continue
		}
		parts := child(schema, "allOf")
		if parts == nil {
			return "Record<string, never>"
		}
		for _, part := range parts.Content {
			if data := child(part, "properties", "data"); data != nil {
				return g.schema(data, "  ")
			}
		}
	}
	return ""
}

func (g *generator) query(op *yaml.Node) string {
	var fields []string
	var parameters []*yaml.Node
	if list := child(op, "parameters"); list != nil {
		parameters = list.Content
	}
	for _, p := range parameters {
		p = g.resolve(p)
		if text(p, "in") == "query" {
			fields = append(fields, fmt.Sprintf("%s%s: %s", member(text(p, "name")),
				optional(text(p, "required") == "true"), g.schema(child(p, "schema"), "  ")))
		}
	}
	if len(fields) == 0 {
		return "Record<string, never>"
	}
	return "{ " + strings.Join(fields, "; ") + " }"
}

func (g *generator) body(op *yaml.Node) string {
	schema := child(op, "requestBody", "content", "application/json", "schema")
	if schema == nil {
		return "undefined"
	}
	if text(child(op, "requestBody"), "required") != "true" {
		return g.schema(schema, "  ") + " | undefined"
	}
	return g.schema(schema, "  ")
}

// schema returns the type of a schema. indent is the indentation of the line on which it begins.
func (g *generator) schema(s *yaml.Node, indent string) string {
	if ref := text(s, "$ref"); ref != "" {
		return ref[strings.LastIndex(ref, "/")+1:]
	}
	if all := child(s, "allOf"); all != nil {
		return g.join(all, " & ", indent)
	}
	if one := child(s, "oneOf"); one != nil {
		return g.join(one, " | ", indent)
	}
	if values := child(s, "enum"); values != nil {
		return union(values.Content, literal)
	}
	if value := child(s, "const"); value != nil {
		return literal(value)
	}
	kind := child(s, "type")
	switch {
	case kind == nil && child(s, "properties") == nil:
		return "unknown"
	case kind != nil && kind.Kind == yaml.SequenceNode:
		return union(kind.Content, func(n *yaml.Node) string { return primitive(n.Value) })
	case kind == nil || kind.Value == "object":
		return g.object(s, indent)
	case kind.Value == "array":
		return "Array<" + g.schema(child(s, "items"), indent) + ">"
	default:
		return primitive(kind.Value)
	}
}

func (g *generator) object(s *yaml.Node, indent string) string {
	properties := child(s, "properties")
	if properties == nil {
		value := "unknown"
		if more := child(s, "additionalProperties"); more != nil && more.Kind == yaml.MappingNode {
			value = g.schema(more, indent)
		}
		return "Record<string, " + value + ">"
	}
	var required []string
	if list := child(s, "required"); list != nil {
		for _, n := range list.Content {
			required = append(required, n.Value)
		}
	}
	var b strings.Builder
	b.WriteString("{\n")
	for name, p := range members(properties) {
		fmt.Fprintf(&b, "%s%s  %s%s: %s;\n", comment(p, indent+"  "), indent, member(name),
			optional(slices.Contains(required, name)), g.schema(p, indent+"  "))
	}
	return b.String() + indent + "}"
}

func (g *generator) join(parts *yaml.Node, by, indent string) string {
	var types []string
	for _, part := range parts.Content {
		if t := g.schema(part, indent); t != "unknown" { // a part may have rules and no type
			types = append(types, t)
		}
	}
	return strings.Join(types, by)
}

// resolve follows a reference into the document.
func (g *generator) resolve(n *yaml.Node) *yaml.Node {
	if ref := text(n, "$ref"); ref != "" {
		return child(g.doc, strings.Split(strings.TrimPrefix(ref, "#/"), "/")...)
	}
	return n
}

func primitive(kind string) string {
	switch kind {
	case "integer", "number":
		return "number"
	default:
		return kind // string, boolean, null
	}
}

// member returns the name of a member, quoted if it is no identifier.
func member(name string) string {
	if strings.ContainsAny(name, ".*-") {
		return strconv.Quote(name)
	}
	return name
}

func literal(n *yaml.Node) string {
	if n.Tag == "!!str" {
		return strconv.Quote(n.Value)
	}
	return n.Value
}

func union(nodes []*yaml.Node, typeOf func(*yaml.Node) string) string {
	var all []string
	for _, n := range nodes {
		all = append(all, typeOf(n))
	}
	return strings.Join(all, " | ")
}

// optional returns the mark that follows the name of a member.
func optional(required bool) string {
	if required {
		return ""
	}
	return "?"
}

// comment returns the description of a schema as a comment on a line of its own; "" if it has none.
func comment(s *yaml.Node, indent string) string {
	description := strings.Join(strings.Fields(text(s, "description")), " ")
	if description == "" {
		return ""
	}
	return indent + "/** " + strings.ReplaceAll(description, "*/", "* /") + " */\n"
}

// child returns the node at a path of member names; nil if there is none. n may be nil.
func child(n *yaml.Node, path ...string) *yaml.Node {
	for _, name := range path {
		var next *yaml.Node
		for key, value := range members(n) {
			if key == name {
				next = value
			}
		}
		n = next
	}
	return n
}

// text returns the scalar of a member; "" if there is none.
func text(n *yaml.Node, name string) string {
	if v := child(n, name); v != nil {
		return v.Value
	}
	return ""
}

// members iterates over a mapping in its order, those of a merged anchor first.
func members(n *yaml.Node) func(yield func(string, *yaml.Node) bool) {
	return func(yield func(string, *yaml.Node) bool) {
		if n == nil {
			return
		}
		if n.Kind == yaml.AliasNode {
			n = n.Alias
		}
		if n.Kind != yaml.MappingNode {
			return
		}
		for i := 0; i < len(n.Content); i += 2 {
			key, value := n.Content[i], n.Content[i+1]
			if key.Tag == "!!merge" {
				for name, merged := range members(value) {
					if !yield(name, merged) {
						return
					}
				}
				continue
			}
			if value.Kind == yaml.AliasNode {
				value = value.Alias
			}
			if !yield(key.Value, value) {
				return
			}
		}
	}
}
