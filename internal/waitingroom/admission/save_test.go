package admission_test

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/waitingroom"
	"flashsale.dev/seckill/internal/waitingroom/admission"
)

// memory is a line in a testing/synctest bubble, where times are exact. It is the Redis and the
// Store of an admitter.
type memory struct {
	admission.Redis
	admission.Store
	t     *testing.T
	state admission.State
	start time.Time       // of the sale
	sleep time.Duration   // the next save sleeps
	moves []time.Duration // since the start, when the next call moves the line
	began time.Time
	saved []save
	steps []time.Duration // since the start, when Redis was asked
	grows int64           // buyers who join before each step
	// change changes the line ten seconds after the start; may be nil.
	change func(*admission.State)
}

// save is a watermark, and when MySQL got it.
type save struct {
	admitted int64
	after    time.Duration
}

func (m *memory) Room(context.Context, int64) (admission.State, error) {
	m.steps = append(m.steps, time.Since(m.began))
	m.state.Joined += m.grows
	if m.state.Now = time.Now(); m.change != nil && time.Since(m.began) >= 10*time.Second {
		m.change(&m.state)
		m.change = nil
	}
	return m.state, nil
}

func (m *memory) Admit(context.Context, int64, admission.Call) (admission.State, error) {
	m.state.Calls++
	if len(m.moves) > 0 && time.Since(m.began) >= m.moves[0] {
		m.moves = m.moves[1:]
		m.state.Admitted++
	}
	return m.state, nil
}

func (m *memory) Turns(context.Context, int64, admission.State) ([]admission.Turn, error) {
	return nil, nil
}

func (m *memory) SetHeld(context.Context, int64, string, admission.Held, bool) error { return nil }

func (m *memory) SaveRoom(_ context.Context, _ int64, _ string, r admission.Record) error {
	m.saved = append(m.saved, save{r.Admitted, time.Since(m.began)})
	time.Sleep(m.sleep)
	m.sleep = 0
	return nil
}

func (m *memory) HeldUnits(context.Context, int64) (admission.Held, error) {
	return admission.Held{}, nil
}

// TestAdmitter_SavesALineThatMovedAtOnce checks that MySQL has each new watermark in the moment of
// the call: a loss of Redis afterwards would have the same buyers called again, although they have
// bought. A line that stands still is saved once a second.
func TestAdmitter_SavesALineThatMovedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ms = time.Millisecond
		m := newMemory(t, 250*ms, 400*ms, 1900*ms)
		m.admit(3050 * ms)
		require.Equal(t, []save{
			{0, 0}, {1, 300 * ms}, {2, 400 * ms}, {2, 1400 * ms}, {3, 1900 * ms}, {3, 2900 * ms},
		}, m.saved)
	})
}

// TestAdmitter_SavesSoonAfterASleep checks that a process which was suspended during a save does
// not take the time for the cost of saves: it saves the line again within seconds.
func TestAdmitter_SavesSoonAfterASleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(t, time.Second)
		m.sleep = time.Minute
		m.admit(75 * time.Second)
		require.EqualValues(t, 1, m.saved[len(m.saved)-1].admitted)
	})
}

// TestAdmitter_QuietLinesStepOnceASecond checks lines in which no buyer can be called: before the
// start, without anybody in line, and sold out. They are saved each second. The start ends the
// quiet, and so does a buyer who joins and a unit that returns.
func TestAdmitter_QuietLinesStepOnceASecond(t *testing.T) {
	for name, line := range map[string]struct {
		start         time.Duration
		quiet, change func(s *admission.State)
	}{
		"upcoming": {start: 10250 * time.Millisecond, quiet: func(*admission.State) {}},
		"empty": {
			quiet:  func(s *admission.State) { s.Admitted, s.Called = s.Joined, 1 },
			change: func(s *admission.State) { s.Joined++ },
		},
		"sold out": {
			quiet:  func(s *admission.State) { s.Available = 0 },
			change: func(s *admission.State) { s.Available = 1 },
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMemory(t)
				m.start, m.change = m.began.Add(line.start), line.change
				line.quiet(&m.state)
				m.admit(11250 * time.Millisecond)
				quiet, saved := 0, 0
				for _, at := range m.steps {
					if at <= 10*time.Second {
						quiet++
					}
				}
				for _, s := range m.saved {
					if s.after <= 10*time.Second {
						saved++
					}
				}
				require.Equal(t, []int{11, 10}, []int{quiet, saved}) // at 0, 0.1, 1.1, 2.1 s, …
				after := m.steps[quiet:]
				require.GreaterOrEqual(t, len(after), 10)
				require.Less(t, after[0], 10400*time.Millisecond)
			})
		})
	}
}

// TestAdmitter_GrowingLineIsNotQuiet checks that numbers are granted as fast before the start of
// a sale as after it, while buyers join.
func TestAdmitter_GrowingLineIsNotQuiet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(t)
		m.start, m.grows = m.began.Add(time.Hour), 1
		m.admit(10050 * time.Millisecond)
		require.Len(t, m.steps, 101)
	})
}

// TestAdmitter_LineWithGapsIsNotQuiet checks that a line is not taken for empty while buyers of
// lost numbers may wait in it: they are called at the sale's rate.
func TestAdmitter_LineWithGapsIsNotQuiet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(t)
		m.state.Admitted, m.state.Gaps = m.state.Joined, []admission.Gap{{From: 3, To: 9}}
		m.admit(10050 * time.Millisecond)
		require.Len(t, m.steps, 101)
	})
}

// newMemory returns a line that moves at times since now.
func newMemory(t *testing.T, moves ...time.Duration) *memory {
	t.Helper()
	m := &memory{
		t: t, began: time.Now(), moves: moves,
		state: admission.State{
			Lease: "a/1", SaleLease: "a/1", Gate: seckill.GateOpen, Granted: 1 << 20, Joined: 9,
			Available: 9,
			Seed:      waitingroom.NewSeed().Hex(), DrawSize: 9, Now: time.Now(),
		},
	}
	seed, err := waitingroom.ParseSeed(m.state.Seed)
	require.NoError(t, err)
	m.state.Commitment = seed.Commitment()
	return m
}

// admit runs an admitter for a while.
func (m *memory) admit(while time.Duration) {
	m.t.Helper()
	sale := seckill.Sale{
		Admission: seckill.ByWaitingRoom, Status: seckill.Exposed, PerBuyerLimit: 1,
		StartAt: m.start, EndAt: time.Now().Add(time.Hour),
	}
	a := admission.Admitter{
		Redis: m, Store: m, Log: slog.New(slog.DiscardHandler),
		Lines: func() []seckill.Sale { return []seckill.Sale{sale} },
	}
	ctx, stop := context.WithTimeout(m.t.Context(), while)
	defer stop()
	require.NoError(m.t, a.Run(ctx))
}
