package config

import (
	"fmt"
	"io"
)

// Help writes the settings of a program, as -help shows them. Only the settings that this program
// reads are listed.
func Help(w io.Writer, p Program) {
	for _, s := range Settings(p) {
		note := ""
		if s.Default != "" {
			note = " [" + s.Default + "]"
		}
		fmt.Fprintf(w, "  %s (%s)%s\n      %s\n", s.Name, s.Unit, note, s.Help)
	}
}
