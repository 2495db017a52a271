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
	gaps gapPositions
	// ended is the bitmap of the numbers that wait no more, as this node read it when Left last
	// changed.
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

// gapPositions are the positions of the numbers in gaps.
type gapPositions struct {
	drawn []int64 // of numbers in the draw, in ascending order
	later []Gap   // of other numbers, which are their own positions; some ranges are empty
}

// positionsOf returns the positions of the numbers in gaps. draw is nil before the draw.
func positionsOf(gaps []Gap, draw *waitingroom.Draw) (p gapPositions) {
	size := int64(0)
	if draw != nil {
		size = int64(draw.Size())
	}
	for _, g := range gaps {
		for number := g.From; number <= min(g.To, size); number++ {
			p.drawn = append(p.drawn, draw.Position(number))
		}
		p.later = append(p.later, Gap{From: max(g.From, size+1), To: g.To})
	}
	slices.Sort(p.drawn)
	return p
}

// upTo returns how many positions up to a given one are of gaps.
func (p gapPositions) upTo(position int64) int64 {
	i, _ := slices.BinarySearch(p.drawn, position+1)
	n := int64(i)
	for _, g := range p.later {
		n += max(0, min(position, g.To)-g.From+1)
	}
	return n
}

// lastGaps remembers the gaps of a room. Redis returns them with the details of a State only, and a
// room never has fewer.
type lastGaps struct {
	gaps      []Gap
	draw      *waitingroom.Draw // of the positions
	positions gapPositions
}

// of returns the gaps of the last state that has them, and their positions.
func (l *lastGaps) of(s State, draw *waitingroom.Draw) ([]Gap, gapPositions) {
	if more := len(s.Gaps) > len(l.gaps); more || l.draw != draw {
		if more {
			l.gaps = s.Gaps
		}
		l.draw, l.positions = draw, positionsOf(l.gaps, draw)
	}
	return l.gaps, l.positions
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
	Ahead    int64 // positions that are called before, without gaps
	ETA      time.Duration
	State    Progress
	Until    time.Time // end of the admission; zero unless State is Admitted
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
	case s.Phase() == waitingroom.PhaseOver:
		p.State = PlaceOver
	case seat.Until.After(s.Now):
		p.State, p.Until = Admitted, seat.Until
		if s.Sale.EndAt.Before(p.Until) { // nobody can buy afterwards
			p.Until = s.Sale.EndAt
		}
	case seat.Mark == Passed, seat.Mark == InLine && s.called(p.Position):
		p.State = Missed
	default:
		counted := s.Counted(p.Position-1) + 1
		p.Ahead = s.line().Ahead(counted)
		early := min(max(0, s.Sale.StartAt.Sub(s.Now)), waitingroom.Longest)
		p.ETA = s.line().ETA(counted) + early
	}
	return p
}

// called reports whether a position was called.
func (s *Status) called(position int64) bool { return position > 0 && position <= s.Admitted }

// inGap reports whether a number is in a gap.
func (s *Status) inGap(number int64) bool {
	return slices.ContainsFunc(s.Gaps, func(g Gap) bool {
		return g.From <= number && number <= g.To
	})
}

// hasEnded reports whether a number waits no more.
func (s *Status) hasEnded(number int64) bool {
	at := number / 8
	return at < int64(len(s.ended)) && s.ended[at]>>(7-number%8)&1 == 1
}

// Counted returns how many of the positions up to a given one count as buyers: all but those of
// gaps. It is a lower bound, because buyers who show a ticket from a gap do not count either. These
// are at most the buyers who joined after MySQL's last save before the loss. If they counted, the
// buyers ahead of a place would become more with each of them.
func (s *Status) Counted(position int64) int64 { return position - s.gaps.upTo(position) }

// line returns the arithmetic of the line without gaps, by the rate alone.
func (s *Status) line() waitingroom.Room {
	return waitingroom.Room{
		PermitsPerSecond: s.Sale.Rate.PermitsPerSecond, Admitted: s.Counted(s.Admitted),
	}
}
