package roommodel

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"flashsale.dev/seckill/internal/testing/property"
	"flashsale.dev/seckill/internal/waitingroom"
)

var start = time.Date(2026, 11, 27, 10, 0, 0, 0, time.UTC)

// roomWith is a room that has run for a minute, so that a burst of 1,000 permits has accumulated.
func roomWith(change func(*Room)) Room {
	r := Room{
		Room:    waitingroom.Room{PermitsPerSecond: 1000, Burst: time.Second},
		StartAt: start, EndAt: start.Add(time.Hour),
		PerBuyerLimit: 1, Joined: 5000, Available: 500,
	}
	change(&r)
	return r
}

func TestAdvance_TakesTheLeastBound(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Room)
		want   int64
	}{
		"stock":                   {func(*Room) {}, 500},
		"stock and admissions":    {func(r *Room) { r.Outstanding = 499 }, 1},
		"stock is all promised":   {func(r *Room) { r.Outstanding = 500 }, 0},
		"more promised than left": {func(r *Room) { r.Outstanding = 501 }, 0},
		"rate":                    {func(r *Room) { r.PermitsPerSecond = 30 }, 30},
		"slow rate":               {func(r *Room) { r.PermitsPerSecond = 0.1 }, 1},
		"line":                    {func(r *Room) { r.Admitted = 4990 }, 10},
		"line is empty":           {func(r *Room) { r.Admitted = 5000 }, 0},
		"limit of 3":              {func(r *Room) { r.PerBuyerLimit = 3 }, 167},
		"last units":              {func(r *Room) { r.PerBuyerLimit, r.Available = 3, 3 }, 1},
		"last units and one acts": {
			func(r *Room) { r.PerBuyerLimit, r.Available, r.Outstanding = 3, 3, 1 }, 0,
		},
		"one more than the limit": {func(r *Room) { r.PerBuyerLimit, r.Available = 3, 4 }, 2},
		"sold out": {
			func(r *Room) { r.Available, r.Held = 0, 5 }, 0,
		},
		"before the start": {func(r *Room) { r.StartAt = start.Add(time.Hour) }, 0},
		"after the end":    {func(r *Room) { r.EndAt = start.Add(time.Second) }, 0},
	} {
		require.Equal(t, c.want, roomWith(c.change).Advance(start.Add(time.Minute)), name)
	}
}

func TestPhase_FollowsTimeAndUnits(t *testing.T) {
	now := start.Add(time.Minute)
	phase := func(change func(*Room)) waitingroom.Phase { return roomWith(change).Phase(now) }
	require.Equal(t, waitingroom.PhaseOpen,
		phase(func(r *Room) { r.StartAt = now.Add(1); r.Available = 0 }))
	require.Equal(t, waitingroom.PhaseRunning, phase(func(r *Room) { r.StartAt = now }))
	require.Equal(t, waitingroom.PhaseOver, phase(func(r *Room) { r.EndAt = now }))
	require.Equal(t, waitingroom.PhaseOver, phase(func(r *Room) { r.Available = 0 }))
	require.Equal(t, waitingroom.PhaseRunning, phase(func(r *Room) { r.Available, r.Held = 0, 1 }))
	require.Equal(t, waitingroom.PhaseRunning, phase(func(r *Room) {
		r.Available, r.Pending = 0, 1
	}))
}

func TestAdmit_ClockThatStepsNeverStopsTheLine(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		r := roomWith(func(r *Room) {
			r.StartAt, r.EndAt = time.Time{}, start.AddDate(1000, 0, 0)
			r.PermitsPerSecond = rapid.Float64Range(0.1, 1e5).Draw(t, "rate")
			r.Joined, r.Available = 1<<40, 1<<40
		})
		now := start
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.Int64Range(-1e12, 1e12).Draw(t, "step")))
			n := r.Advance(now)
			if most := int64(max(1, r.PermitsPerSecond)); n < 0 || n > most {
				t.Fatalf("%d admissions at once at a rate of %v", n, r.PermitsPerSecond)
			}
			r = r.Admit(now, n)
		}
		interval := r.ETA(r.Admitted + 1)
		now = now.Add(interval)
		if r.Advance(now) < 1 {
			t.Fatalf("nobody is admitted an interval of %v later", interval)
		}
	})
}

func TestAdvance_NeverExceedsTheRate(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		rate := rapid.Float64Range(0.1, 5000).Draw(t, "rate")
		r := roomWith(func(r *Room) {
			r.PermitsPerSecond, r.Joined, r.Available = rate, 1<<40, 1<<40
			r.Paid = start
		})
		now := start
		for range rapid.IntRange(1, 50).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.Int64Range(0, 3e9).Draw(t, "step")))
			r = r.Admit(now, r.Advance(now))
			if most := now.Sub(start).Seconds() * rate; float64(r.Admitted) > most+1e-6 {
				t.Fatalf("%d admissions, the rate allows %v", r.Admitted, most)
			}
		}
	})
}

// visit is one admission in a rush: what its buyer does, and until when it counts.
type visit struct {
	until    time.Time
	acts     time.Time // when the buyer buys or leaves; after until means never
	quantity int64     // 0 leaves
	back     time.Duration
}

// unpaid are units that return at a moment.
type unpaid struct {
	at    time.Time
	units int64
}

// rush is a simulated sale. Its buyers buy, leave, sleep or do not pay, as rapid draws.
type rush struct {
	t      *rapid.T
	room   Room
	life   time.Duration
	now    time.Time
	visits []visit
	unpaid []unpaid
	idle   time.Time // since when a unit and a waiting buyer have met no admission
}

func (r *rush) admit() {
	n := r.room.Advance(r.now)
	r.room = r.room.Admit(r.now, n)
	if r.room.Admitted > r.room.Joined {
		r.t.Fatalf("admitted %d of %d", r.room.Admitted, r.room.Joined)
	}
	for range n {
		v := visit{until: r.now.Add(r.life)}
		v.acts = r.now.Add(time.Duration(rapid.Int64Range(0, 3*int64(r.life)/2).Draw(r.t, "acts")))
		v.quantity = rapid.Int64Range(0, r.room.PerBuyerLimit).Draw(r.t, "quantity")
		if rapid.Bool().Draw(r.t, "does not pay") {
			v.back = time.Duration(rapid.Int64Range(1, 20e9).Draw(r.t, "back"))
		}
		r.visits = append(r.visits, v)
	}
	if n > 0 || r.room.Available == 0 || r.room.Admitted == r.room.Joined {
		r.idle = r.now
	}
	tick := 100 * time.Millisecond
	interval := r.room.ETA(r.room.Admitted + 1)
	if bound := r.life + max(time.Second, interval) + tick; r.now.Sub(r.idle) > bound {
		r.t.Fatalf("%d units and %d buyers wait for %v", r.room.Available,
			r.room.Joined-r.room.Admitted, r.now.Sub(r.idle))
	}
}

// act lets buyers act whose time has come. Those who buy before their admission ends must find a
// unit.
func (r *rush) act() {
	var still []visit
	for _, v := range r.visits {
		switch {
		case v.acts.After(r.now) && v.until.After(r.now):
			still = append(still, v)
			continue
		case v.acts.Before(v.until) && v.quantity > 0:
			r.buy(v)
		}
		r.room.Outstanding--
	}
	r.visits = still
}

func (r *rush) buy(v visit) {
	if r.room.Available < 1 {
		r.t.Fatalf("an admitted buyer finds no unit %v before the end", v.until.Sub(r.now))
	}
	quantity := min(v.quantity, r.room.Available)
	r.room.Available -= quantity
	if v.back > 0 {
		r.room.Held += quantity
		r.unpaid = append(r.unpaid, unpaid{r.now.Add(v.back), quantity})
	}
}

func (r *rush) returnUnits() {
	var still []unpaid
	for _, u := range r.unpaid {
		if u.at.After(r.now) {
			still = append(still, u)
			continue
		}
		r.room.Held -= u.units
		r.room.Available += u.units
	}
	r.unpaid = still
}

func TestAdvance_AdmittedFindAUnitAndNoUnitIdles(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		r := rush{t: t, now: start, idle: start, room: roomWith(func(r *Room) {
			r.PermitsPerSecond = rapid.Float64Range(0.5, 100).Draw(t, "rate")
			r.PerBuyerLimit = rapid.Int64Range(1, 4).Draw(t, "limit")
			r.Available = rapid.Int64Range(0, 20).Draw(t, "available")
			r.Joined = rapid.Int64Range(0, 40).Draw(t, "joined")
		})}
		r.life = time.Duration(rapid.Int64Range(1, 30).Draw(t, "life")) * time.Second
		steps := []func(){r.admit, r.act, r.returnUnits}
		order := rapid.Permutation([]int{0, 1, 2}).Draw(t, "order")
		for r.room.Phase(r.now) == waitingroom.PhaseRunning && r.room.Admitted < r.room.Joined ||
			len(r.visits) > 0 {
			for _, i := range order {
				steps[i]()
			}
			r.now = r.now.Add(100 * time.Millisecond)
		}
		waiting, left := r.room.Joined-r.room.Admitted, r.room.Available+int64(len(r.unpaid))
		if waiting > 0 && left > 0 {
			t.Fatalf("over while %d buyers wait, with units left or unpaid", waiting)
		}
	})
}
