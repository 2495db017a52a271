package main

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestVocabulary_Find(t *testing.T) {
	v, err := parse("desk desks\nline @ internal/order\nallow (?i)command lines?\n")
	require.NoError(t, err)
	for _, c := range []struct {
		file, line string
		want       []string
	}{
		{"a.go", "func NewDesk(deskKey string) // desks", []string{"desk", "desk", "desks"}},
		{"a.go", "SECKILL_DESK_TIMEOUT", []string{"desk"}},
		{"a.go", "a desktop and a line", nil},
		{"internal/order/a.go", "type Line struct", []string{"line"}},
		{"internal/order/a.go", "the command line", nil},
		{"internal/orders/a.go", "type Line struct", nil},
	} {
		require.Equal(t, c.want, v.find(c.file, c.line), c.line)
	}
}

// TestVocabulary_AllowsAreNeeded requires that each allow removes a forbidden word from some file.
func TestVocabulary_AllowsAreNeeded(t *testing.T) {
	v, err := parse(words)
	require.NoError(t, err)
	stale, wordsOnly := v.allow, vocabulary{scopes: v.scopes}
	for _, file := range trackedFiles(t, "") {
		lines, err := linesOf(root, file)
		require.NoError(t, err)
		text := strings.Join(lines, "\n")
		stale = slices.DeleteFunc(stale, func(re *regexp.Regexp) bool {
			return wordsOnly.find(file, strings.Join(re.FindAllString(text, -1), " ")) != nil
		})
	}
	require.Empty(t, stale)
}
