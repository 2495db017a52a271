package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFind_ReportsForbiddenWordsUnlessAllowed(t *testing.T) {
	v, err := parse("desk desks\nline @ internal/order\nallow command lines?\nallow desktop\n")
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
	require.True(t, v.allows[0].needed)
	require.False(t, v.allows[1].needed, "a desktop is no desk")
}
