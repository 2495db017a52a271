package main

import (
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

func TestVocabulary_WordsFileParses(t *testing.T) {
	v, err := parse(words)
	require.NoError(t, err)
	require.Greater(t, len(v.scopes), 40)
}
