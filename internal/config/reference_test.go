package config

import (
	"flag"
	"fmt"
	"strings"
	"testing"

	"flashsale.dev/seckill/internal/testing/reference"
)

var update = flag.Bool("update", false, "rewrite the package's table in docs/reference")

func TestReference_ListsAllSettings(t *testing.T) {
	reference.Check(t, *update, "../../docs/reference/configuration.md", "settings",
		"go test ./internal/config -update", referenceTable())
}

// referenceTable returns the table of all settings in Markdown.
func referenceTable() string {
	var b strings.Builder
	b.WriteString("| setting | default | unit | read by | meaning |\n|---|---|---|---|---|\n")
	for _, s := range Settings("") {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", s.Name, defaults(s), s.Unit,
			strings.ReplaceAll(s.field.Tag.Get("in"), " ", ", "), s.Help)
	}
	return b.String()
}

// defaults returns a setting's default and the defaults of programs that override it.
func defaults(s Setting) string {
	all := "none"
	if s.Default != "" {
		all = "`" + s.Default + "`"
	}
	for _, p := range []Program{Consumer, Standalone, RateLimit} {
		if own, ok := s.field.Tag.Lookup("envDefault." + string(p)); ok {
			all += fmt.Sprintf(", %s `%s`", p, own)
		}
	}
	return all
}
