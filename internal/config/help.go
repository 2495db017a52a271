package config

import (
	"fmt"
	"io"
	"strings"
)

// Help writes the settings of a program, as -help shows them. Only the settings that this program
// reads are listed.
func Help(w io.Writer, p Program) error {
	var b strings.Builder

	for _, s := range Settings(p) {
		fmt.Fprintf(&b, "  %s (%s)%s\n      %s\n", s.Name, s.Unit, s.defaultText(), s.Help)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (s Setting) defaultText() string {
	switch {
	case s.Default != "":
		return " [" + s.Default + "]"
	case s.Required:
		return " required"
	default:
		return ""
	}
}
