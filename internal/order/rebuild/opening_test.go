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

// TestEndOpening_WaitsForTheGateOfAnotherMasterOnly checks that a rebuild does not wait for a gate
// that it has shut itself, nor a second time for another master's. Its clock moves only while
// nothing runs.
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

// openingRedis is a master that opens the gate, or has another epoch by then.
type openingRedis struct {
	fakeRedis
	opens  bool
	opened []OpenTime
}

var leased = Lease{ID: "this", Now: time.Unix(1_000, 0)}

func (*openingRedis) Lease(context.Context, int64) (Lease, error) { return leased, nil }

func (r *openingRedis) OpenGate(_ context.Context, _, _ int64, t OpenTime) (bool, error) {
	r.opened = append(r.opened, t)
	return r.opens, nil
}

// recordingStore is a MySQL that records an opening, or refuses to.
type recordingStore struct {
	fakeStore
	lease   string
	refusal error
}

func (s *recordingStore) RecordOpening(_ context.Context, _, _, _ int64, lease string) error {
	s.lease = lease
	return s.refusal
}

// TestOpen_GateOpensAfterItsRecord checks that a gate that can end is opened for its lifetime, but
// only once MySQL has its master. The epoch has failed if the gate is not opened.
func TestOpen_GateOpensAfterItsRecord(t *testing.T) {
	const lifetime = 20 * time.Second
	times := []OpenTime{{leased.Now.Add(-clockStep), leased.Now.Add(lifetime)}}
	for name, c := range map[string]struct {
		refusal error
		opens   bool
		opened  []OpenTime
		want    error
	}{
		"opens":       {nil, true, times, nil},
		"is replaced": {nil, false, times, ErrFenced},
		"is fenced":   {ErrFenced, true, nil, ErrFenced},
	} {
		t.Run(name, func(t *testing.T) {
			store, redis := &recordingStore{refusal: c.refusal}, &openingRedis{opens: c.opens}
			o := Opener{Store: store, Redis: redis, GateLifetime: lifetime}
			_, err := o.Open(t.Context(), 1, 1)
			require.ErrorIs(t, err, c.want)
			require.Equal(t, c.opened, redis.opened)
			require.Equal(t, leased.ID, store.lease)
		})
	}
}
