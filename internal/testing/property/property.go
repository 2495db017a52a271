// Package property runs rapid's property tests.
package property

import (
	"flag"
	"os"
	"testing"

	"pgregory.net/rapid"
)

// Check searches for a case that fails. CI draws the same cases in each run, so that a commit
// passes or fails by what it changed. A developer's runs draw other cases each time:
// -rapid.checks=100000 searches long.
func Check(t *testing.T, prop func(*rapid.T)) {
	t.Helper()
	if os.Getenv("CI") != "" && flag.Lookup("rapid.seed").Value.String() == "0" {
		if err := flag.Set("rapid.seed", "1"); err != nil {
			t.Fatal(err)
		}
	}
	rapid.Check(t, prop)
}
