package config

import (
	"fmt"
	"io"
	"strings"
)

// Help writes the settings of a program as -help shows them.
func Help(w io.Writer, p Program) error {
	var b strings.Builder
	b.WriteString("Environment:\n")
	for _, s := range Settings(p) {
		fmt.Fprintf(&b, "  %s (%s)%s\n      %s\n", s.Name, s.Unit, s.standing(), s.Help)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (s Setting) standing() string {
	switch {
	case s.Default != "":
		return " [" + s.Default + "]"
	case s.Required:
		return " required"
	default:
		return ""
	}
}

// Markdown writes the table of all settings as the README shows it.
func Markdown(w io.Writer) error {
	var b strings.Builder
	b.WriteString("| setting | default | unit | read by | what it does |\n|---|---|---|---|---|\n")
	for _, s := range Settings("") {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", s.Name, s.defaults(), s.Unit,
			strings.ReplaceAll(s.field.Tag.Get("in"), " ", ", "), s.Help)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// defaults are the default and those that one program has for itself.
func (s Setting) defaults() string {
	all := "none"
	if s.Default != "" {
		all = "`" + s.Default + "`"
	}
	for _, p := range []Program{Consumer, Standalone} {
		if own, ok := s.field.Tag.Lookup("envDefault." + string(p)); ok {
			all += fmt.Sprintf(", %s `%s`", p, own)
		}
	}
	return all
}
