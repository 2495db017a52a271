package rules

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"flashsale.dev/seckill/internal/ratelimit"
)

// maxRulesFile bounds the file's size in bytes. A larger file is another file by mistake.
const maxRulesFile = 1 << 20

type ruleFile struct {
	Rules []Rule `yaml:"rules"`
}

// Load reads a rules file; an empty path means the defaults alone. A rule of the file replaces a
// default of the same name, and has its route if it names none. Errors name the file's line. A file
// with an error stops the program: operators would otherwise detect missing limits only in a rush.
func Load(path string) (*Rulebook, error) {
	if path == "" {
		return New(Defaults()...)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("ratelimit: read rules: %w", err)
	}
	rules, err := Parse(text)
	if err != nil {
		return nil, fmt.Errorf("ratelimit: rules file: %w", err)
	}
	all := Defaults()
	for _, rule := range rules {
		if i := slices.IndexFunc(all, func(d Rule) bool { return d.Name == rule.Name }); i >= 0 {
			rule.Route = cmp.Or(rule.Route, all[i].Route)
		}
		all = append(all, rule)
	}
	return New(all...)
}

// Parse reads rules as YAML, strictly. An unknown or repeated field, an invalid limit or a repeated
// name is an error. Each error names its line.
func Parse(text []byte) ([]Rule, error) {
	if len(text) > maxRulesFile {
		return nil, fmt.Errorf("larger than %d bytes", maxRulesFile)
	}
	var tree yaml.Node
	if err := yaml.Unmarshal(text, &tree); err != nil {
		return nil, err
	}
	if line := nullEntry(&tree); line > 0 {
		return nil, fmt.Errorf("line %d: a list has an empty entry", line)
	}
	var file ruleFile
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(&file); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	var next yaml.Node
	if err := decoder.Decode(&next); err == nil {
		return nil, fmt.Errorf("line %d: a second YAML document", next.Line)
	} else if !errors.Is(err, io.EOF) {
		return nil, err
	}
	seen := map[string]bool{}
	for i, rule := range file.Rules {
		_, err := rule.compile()
		if err == nil && seen[rule.Name] {
			err = ratelimit.BadField("name", "%q occurs twice", rule.Name)
		}
		if err != nil {
			return nil, fmt.Errorf("%s%s: %w", lineOf(&tree, i, err), label(i, rule), err)
		}
		seen[rule.Name] = true
	}
	return file.Rules, nil
}

// nullEntry returns the line of a list's first null entry, or 0. The YAML library drops such
// entries.
func nullEntry(node *yaml.Node) int {
	for _, entry := range node.Content {
		if node.Kind == yaml.SequenceNode && entry.ShortTag() == "!!null" {
			return entry.Line
		}
		if line := nullEntry(entry); line > 0 {
			return line
		}
	}
	return 0
}

// lineOf is "line N: " for the invalid field, else for its rule, else "".
func lineOf(tree *yaml.Node, rule int, err error) string {
	var file struct{ Rules []yaml.Node }
	var fields map[string]yaml.Node
	if tree.Decode(&file) != nil || file.Rules[rule].Decode(&fields) != nil {
		return ""
	}
	at := file.Rules[rule]
	if field, ok := errors.AsType[*ratelimit.FieldError](err); ok {
		name, _, _ := strings.Cut(field.Field, ".") // "fallback" of "fallback.code"
		if value, present := fields[name]; present {
			at = value
		}
	}
	return fmt.Sprintf("line %d: ", at.Line)
}
