package rules

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"go.yaml.in/yaml/v3"

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
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(&file); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if err := decoder.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one YAML document")
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

// lineOf is "line N: " for the invalid field, else for its rule, else "".
func lineOf(text []byte, rule int, err error) string {
	var file struct{ Rules []yaml.Node }
	var fields map[string]yaml.Node
	if yaml.Unmarshal(text, &file) != nil || file.Rules[rule].Decode(&fields) != nil {
		return ""
	}
	at := file.Rules[rule]
	var field *ratelimit.FieldError
	if errors.As(err, &field) && fields[field.Field].Line > 0 {
		at = fields[field.Field]
	}
	return fmt.Sprintf("line %d: ", at.Line)
}
