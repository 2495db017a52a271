package faults

import (
	"flag"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testing/installation"
)

// previousFlag names the release that a roll-back goes back to.
var previousFlag = flag.String("faults.previous", "", "commit or tag to roll back to; the newest tag behind us if empty, or ten commits ago where there is none")

func releaseHarms() []harm {
	return []harm{{name: "release-rolled-back", over: 25 * time.Second, do: rollBack}}
}

// rollBack takes all programs back to the last release, one after another, consumers first, on the database as the new one
// has it; and then forward again. Both releases run side by side meanwhile.
func rollBack(t *testing.T, s *scene) {
	t.Helper()
	previous := installation.Previous(t, *previousFlag)
	programs := slices.Concat(s.Consumers, s.APIs)
	for i, p := range programs {
		s.until(float64(i+1) / 12)
		change(t, p, previous)
	}
	for i, p := range programs {
		s.until(0.5 + float64(i+1)/12)
		change(t, p, "")
	}
}

// change ends a program as an operator would, and starts that of a folder in its place ("": our own).
func change(t *testing.T, p *installation.Program, folder string) {
	t.Helper()
	require.NoError(t, p.Stop(), "%s", p.Log())
	p.Use(t, folder)
	p.Start(t)
}
