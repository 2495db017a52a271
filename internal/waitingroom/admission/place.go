package admission

import (
	"slices"
	"sync/atomic"
	"time"

	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/waitingroom"
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
	// ended has the numbers that wait no more, as they were when one ended before it was called.
	ended []byte
	// Page caches this status as the HTTP layer has encoded it.
	Page atomic.Value
}

// lastDraw remembers the draw of a room, which takes thousands of hashes.
type lastDraw struct {
	published waitingroom.Published
	draw      *waitingroom.Draw
}

// of returns the draw of a state; nil before the draw.
func (l *lastDraw) of(s State) (*waitingroom.Draw, error) {
	if s.Seed == "" || s.DrawSize == NotDrawn {
		return nil, nil
	}
	p := waitingroom.Published{
		Commitment: s.Commitment, Seed: s.Seed, Digest: s.Digest, Size: uint32(s.DrawSize),
	}
	if l.published != p {
		draw, err := p.Draw()
		if err != nil {
			return nil, err
		}
		l.published, l.draw = p, draw
	}
	return l.draw, nil
}

// Phase returns the phase of the room.
func (s *Status) Phase() waitingroom.Phase {
	switch {
	case s.Over, s.Sale.PhaseAt(s.Now, s.Available) == seckill.PhaseEnded:
		return waitingroom.PhaseOver
	case s.draw != nil:
		return waitingroom.PhaseRunning
	default:
		return waitingroom.PhaseOpen
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
	case s.Phase() == waitingroom.PhaseOver:
		p.State = PlaceOver
	case seat.Mark == Passed, seat.Mark == InLine && s.called(p.Position):
		p.State = Missed
	default:
		p.Ahead = s.line().Ahead(p.Position)
		p.ETA = s.line().ETA(p.Position) + max(0, s.Sale.StartAt.Sub(s.Now))
	}
	return p
}

// called reports whether a position was called.
func (s *Status) called(position int64) bool { return position > 0 && position <= s.Admitted }

// inGap reports whether a number is one that Redis may have lost.
func (s *Status) inGap(number int64) bool {
	return slices.ContainsFunc(s.Gaps, func(g Gap) bool { return g.From <= number && number <= g.To })
}

// hasEnded reports whether a number waits no more.
func (s *Status) hasEnded(number int64) bool {
	at := number / 8
	return at < int64(len(s.ended)) && s.ended[at]>>(7-number%8)&1 == 1
}

// line returns the arithmetic of the line, by the rate alone.
func (s *Status) line() waitingroom.Room {
	return waitingroom.Room{
		PermitsPerSecond: s.Sale.Rate.PermitsPerSecond, Admitted: s.Admitted,
	}
}
