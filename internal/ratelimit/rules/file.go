package rules

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/parser"

	"flashsale.dev/seckill/internal/ratelimit"
)

// maxRulesFile bounds the file's size in bytes. A larger file is another file by mistake.
const maxRulesFile = 1 << 20

type ruleFile struct {
	Rules []Rule `yaml:"rules"`
}

// Load reads a rules file; an empty path means the defaults alone. A rule of the file replaces a
// default of the same name. Errors name the file's line. A file with an error stops the program:
// operators would otherwise detect missing limits only in a rush.
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
	return New(append(Defaults(), rules...)...)
}

// Parse reads rules as YAML, strictly. An unknown or repeated field, an invalid limit or a repeated
// name is an error. Each error names its line.
func Parse(text []byte) ([]Rule, error) {
	if len(text) > maxRulesFile {
		return nil, fmt.Errorf("larger than %d bytes", maxRulesFile)
	}
	var file ruleFile
	if err := yaml.UnmarshalWithOptions(text, &file, yaml.Strict()); err != nil &&
		!errors.Is(err, io.EOF) {
		return nil, errors.New(yaml.FormatError(err, false, true))
	}
	seen := map[string]bool{}
	for i, rule := range file.Rules {
		_, err := rule.compile()
		if err == nil && seen[rule.Name] {
			err = ratelimit.BadField("name", "%q occurs twice", rule.Name)
		}
		if err != nil {
			return nil, fmt.Errorf("%s%s: %w", lineOf(text, i, err), label(i, rule), err)
		}
		seen[rule.Name] = true
	}
	return file.Rules, nil
}

// lineOf is "line N: " for the invalid field, else for its rule, else "". It joins the field of a
// FieldError with the line numbers of the YAML library.
func lineOf(text []byte, rule int, err error) string {
	file, parseErr := parser.ParseBytes(text, 0)
	if parseErr != nil {
		return ""
	}
	paths := []string{fmt.Sprintf("$.rules[%d]", rule)}
	var field *ratelimit.FieldError
	if errors.As(err, &field) {
		paths = append([]string{paths[0] + "." + field.Field}, paths...)
	}
	for _, at := range paths {
		path, err := yaml.PathString(at)
		if err != nil {
			continue
		}
		if node, err := path.FilterFile(file); err == nil && node != nil && node.GetToken() != nil {
			return fmt.Sprintf("line %d: ", node.GetToken().Position.Line)
		}
	}
	return ""
}
