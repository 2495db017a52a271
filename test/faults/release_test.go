package faults

import (
	"flag"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testing/installation"
)

var previousFlag = flag.String("faults.previous", "",
	"commit or tag to roll back to; if empty the newest tag behind HEAD, or ten commits ago")

func releaseFaults() []fault {
	return []fault{{name: "release-rolled-back", spread: 25 * time.Second, inject: rollBack}}
}

// rollBack replaces all programs by those of the previous release, consumers first, on the
// migrated database, and then back again. Both releases run side by side in between.
func rollBack(t *testing.T, r *run) {
	previous := installation.Previous(t, *previousFlag)
	programs := slices.Concat(r.Consumers, r.APIs)
	for turn, folder := range []string{previous, ""} { // "" is this release
		for i, p := range programs {
			r.untilSold(float64(turn)/2 + float64(i+1)/12)
			require.NoError(t, p.Stop(), "%s", p.Log())
			p.Use(t, folder)
			p.Start(t)
		}
	}
}
