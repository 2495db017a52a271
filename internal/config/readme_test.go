package config

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The README's table of settings stands between these two lines.
const (
	tableBegins = "<!-- settings: the output of config.Markdown, held to it by internal/config/readme_test.go -->\n"
	tableEnds   = "<!-- settings end -->"
)

// An operator who reads the README finds every setting there is, with the default and the unit that the programs use.
func TestTheREADMEListsTheSettings(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(readme), tableBegins)
	require.True(t, found, "README.md has no line %q", tableBegins)
	table, _, found := strings.Cut(rest, tableEnds)
	require.True(t, found, "README.md has no line %q after the table", tableEnds)
	var want bytes.Buffer
	require.NoError(t, Markdown(&want))
	require.Equal(t, want.String(), table, "put this in the table's place:\n%s", want.String())
}
