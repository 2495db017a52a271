package httpapi

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPrefers_ComparesQualities checks who gets the orders of a sale as a file.
func TestPrefers_ComparesQualities(t *testing.T) {
	for accept, want := range map[string]bool{
		"text/csv": true, "Text/CSV; charset=utf-8": true, "text/csv, application/json": true,
		"text/csv;q=0.9, */*;q=0.8": true, "application/json;q=0.1, text/csv": true,
		"text/csv;q=0.4, application/*;q=0.9, application/json;q=0.3": true,
		"*/*": false, "text/*": false, "application/json, text/csv": false, "": false,
		"text/csv;q=0": false, "text/csv;q=0.5, application/json": false, "text/csv;q=2": false,
		"text/csv;q=0.5, */*": false, "text/csvx": false, ";": false,
	} {
		require.Equal(t, want, prefers(http.Header{"Accept": {accept}}, "text/csv"),
			accept)
	}
	lines := http.Header{"Accept": {"application/json;q=0.5", "text/csv"}}
	require.True(t, prefers(lines, "text/csv"))
	require.False(t, prefers(http.Header{}, "text/csv"))
}

func TestAccepts_FollowsTheWeight(t *testing.T) {
	for header, want := range map[string]bool{
		"gzip": true, "gzip, deflate, br": true, "br;q=1.0, GZIP; q=0.5": true,
		"": false, "br": false, "x-gzip": false, "gzip;q=0": false, "identity, gzip; q=0.0": false,
	} {
		require.Equal(t, want, accepts([]string{header}, "gzip"), header)
	}
}
