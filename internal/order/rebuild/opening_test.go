package rebuild

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// openedStore is a MySQL that has the gate of a sale open on a master.
type openedStore struct {
	Store
	openOn string
}

func (s *openedStore) EndOpening(context.Context, int64, int64) (string, error) {
	return s.openOn, nil
}

func (s *openedStore) RecordOpening(_ context.Context, _, _, _ int64, lease string) error {
	s.openOn = lease
	return nil
}

// TestEndOpening_WaitsForTheGateOfAnotherMasterOnly checks on a clock that moves only while nothing
// runs that a rebuild does not wait for a gate that it has shut itself, nor a second time for
// another master's.
func TestEndOpening_WaitsForTheGateOfAnotherMasterOnly(t *testing.T) {
	const lifetime = 20 * time.Second
	for _, c := range []struct {
		openOn          string
		lifetime, waits time.Duration
	}{
		{"", lifetime, 0},
		{"this", lifetime, 0},
		{"another", lifetime, lifetime + gateMargin},
		{"another", 0, longestLifetime + gateMargin},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := &Rebuilder{
				Opener: Opener{Store: &openedStore{openOn: c.openOn}, GateLifetime: c.lifetime},
				Log:    slog.New(slog.DiscardHandler),
			}
			for _, waits := range []time.Duration{c.waits, 0} {
				began := time.Now()
				require.NoError(t, r.endOpening(t.Context(), 1, Token{}, "this"))
				require.Equal(t, waits, time.Since(began), c)
			}
		})
	}
}
