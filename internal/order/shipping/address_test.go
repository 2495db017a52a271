package shipping

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCountries_AreThoseOfISO3166 checks the number of countries, and codes that were withdrawn,
// are reserved, or name something else, such as UN.
func TestCountries_AreThoseOfISO3166(t *testing.T) {
	all := Countries()
	require.Len(t, all, 249+1, "and Kosovo, whose XK carriers use")
	require.Subset(t, all, []string{"AX", "BQ", "CW", "DE", "GB", "SS", "SX", "TW", "UM", "XK"})
	for _, code := range []string{
		"AC", "AN", "CP", "CQ", "CS", "DG", "EA", "EU", "EZ", "FQ", "IC", "NT", "PC", "SU", "TA",
		"UK", "UN", "XX", "YU", "ZZ", "de",
	} {
		require.False(t, isCountry(code), code)
	}
}
