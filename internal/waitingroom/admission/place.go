package admission

import (
	"math"
	"slices"
	"time"

	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/waitingroom"
)

// Phase is the state of a room for buyers; the contract names the values.
type Phase string

// The phases.
const (
	Open    Phase = "open"    // before the draw: whoever joins takes part in it
	Running Phase = "running" // the line moves
	Over    Phase = "over"    // nothing is left and nothing can return, or the sale has ended
)

// Progress is how far a place has come; the contract names the values.
type Progress string

// The states of a place.
const (
	Waiting   Progress = "waiting"
	Admitted  Progress = "admitted" // may ask for a random path
	Missed    Progress = "missed"   // was admitted, and the time is over
	PlaceOver Progress = "over"     // the room is over
)

// Status is a room as buyers see it.
type Status struct {
	State
	Sale seckill.View
	draw *waitingroom.Draw // nil before the draw
}

// lastDraw remembers the draw of a room, which takes thousands of hashes.
type lastDraw struct {
	seed string
	draw *waitingroom.Draw
}

// of returns the draw of a state; nil before the draw.
func (l *lastDraw) of(s State) (*waitingroom.Draw, error) {
	if s.Seed == "" || s.DrawSize == NotDrawn {
		return nil, nil
	}
	if l.seed != s.Seed {
		seed, err := waitingroom.ParseSeed(s.Seed)
		if err != nil {
			return nil, err
		}
		l.seed, l.draw = s.Seed, waitingroom.NewDraw(seed, []byte(s.Digest), uint32(s.DrawSize))
	}
	return l.draw, nil
}

// Phase returns the phase of the room.
func (s *Status) Phase() Phase {
	switch {
	case s.Over, s.Sale.PhaseAt(s.Now, s.Available) == seckill.PhaseEnded:
		return Over
	case s.draw != nil:
		return Running
	default:
		return Open
	}
}

// Place is a buyer's place in the line.
type Place struct {
	Number   int64
	Ticket   string
	Position int64 // from 1; 0 before the draw
	Ahead    int64 // buyers who are called before
	ETA      time.Duration
	State    Progress
	Until    time.Time // of Admitted: the end
}

// position returns the position of a number; 0 before the draw.
func (s *Status) position(number int64) int64 {
	if s.draw == nil {
		return 0
	}
	return s.draw.Position(number)
}

// place returns the place of a seat, without a ticket.
func (s *Status) place(seat Seat) Place {
	p := Place{Number: seat.Number, Position: s.position(seat.Number), State: Waiting}
	switch {
	case seat.Until.After(s.Now):
		p.State, p.Until = Admitted, seat.Until
	case s.Phase() == Over:
		p.State = PlaceOver
	case seat.Mark == Passed, seat.Mark == InLine && s.called(p.Position):
		p.State = Missed
	default:
		p.Ahead = max(0, p.Position-s.Admitted-1)
		p.ETA = s.eta(p.Ahead)
	}
	return p
}

// called reports whether a position was called.
func (s *Status) called(position int64) bool { return position > 0 && position <= s.Admitted }

// inGap reports whether a number is one that Redis may have lost.
func (s *Status) inGap(number int64) bool {
	return slices.ContainsFunc(s.Gaps, func(g Gap) bool { return g.From <= number && number <= g.To })
}

// eta estimates the time until a place with so many ahead is called, by the rate alone. Before the
// start it is the time until then.
func (s *Status) eta(ahead int64) time.Duration {
	seconds := float64(ahead) / s.Sale.Rate.PermitsPerSecond
	wait := time.Duration(math.Ceil(min(seconds, math.MaxInt32))) * time.Second
	return wait + max(0, s.Sale.StartAt.Sub(s.Now))
}
