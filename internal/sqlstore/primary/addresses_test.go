package primary

import (
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/require"
)

// TestAddresses_SurviveFormattingAndParsing checks that a DSN may list several addresses.
// Formatting and parsing the DSN must keep them.
func TestAddresses_SurviveFormattingAndParsing(t *testing.T) {
	for dsn, want := range map[string][]string{
		"u:p@tcp(h1:3306)/d":                 {"h1:3306"},
		"u:p@tcp(h1)/d":                      {"h1:3306"},
		"u:p@tcp(h1:1,h2:2,h3:3)/d?tls=true": {"h1:1", "h2:2", "h3:3"},
		"u:p@tcp(h1, h2)/d":                  {"h1:3306", "h2:3306"},
		"u:p@tcp(h1,h2:2)/d":                 {"h1:3306", "h2:2"},
		"u:p@tcp([::1]:1,[::2])/d":           {"[::1]:1", "[::2]:3306"},
		"u:p@tcp([::1]:1,[::2]:3306)/d":      {"[::1]:1", "[::2]:3306"},
		"u:p@unix(/a,b.sock)/d":              {"/a,b.sock"},
	} {
		cfg, err := mysql.ParseDSN(dsn)
		require.NoError(t, err, dsn)
		require.Equal(t, want, Addresses(cfg), dsn)
		again, err := mysql.ParseDSN(cfg.FormatDSN())
		require.NoError(t, err, dsn)
		require.Equal(t, want, Addresses(again), "%s formatted and parsed again", dsn)
	}
}
