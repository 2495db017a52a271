package main

import (
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestLimiterSet_NamesAWrongField checks that the errors are about the command line, not about Go.
func TestLimiterSet_NamesAWrongField(t *testing.T) {
	for field, problem := range map[string]string{
		"permitsPerSecond=abc": "permitsPerSecond: has the wrong type",
		"maxWaitMillis=1.5":    "maxWaitMillis: has the wrong type",
		"speed=3":              `unknown field "speed": limiter get prints the names`,
		"burst":                `"burst" is not name=value`,
		"burst=NaN":            "burst: has the wrong type",
	} {
		args := []string{"limiter", "set", "randomPath", "7", field}
		err := run(t.Context(), args, nil, io.Discard, io.Discard)
		require.EqualError(t, err, problem)
	}
	c, err := changeOf([]string{"permitsPerSecond=.5", "nodelay=true", "algorithm=reserve"})
	require.NoError(t, err)
	require.InDelta(t, .5, *c.PermitsPerSecond, 0)
}
