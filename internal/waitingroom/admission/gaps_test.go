package admission

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/waitingroom"
)

// TestStatus_GapsAreNotAhead compares the places in rooms with random gaps with a line that is
// counted one by one. The gaps are in the draw, beyond it and across its end.
func TestStatus_GapsAreNotAhead(t *testing.T) {
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 0))
		draw := waitingroom.NewDraw(waitingroom.NewSeed(), nil, uint32(random.IntN(300)))
		var gaps []Gap
		inGap, last := map[int64]bool{}, int64(0) // by position
		for range random.IntN(5) {
			g := Gap{From: last + 1 + random.Int64N(100)}
			g.To = g.From + random.Int64N(100)
			gaps, last = append(gaps, g), g.To
			for number := g.From; number <= g.To; number++ {
				inGap[draw.Position(number)] = true
			}
		}
		var known lastGaps
		s := Status{draw: draw, State: State{Joined: last + 300, Details: Details{Gaps: gaps}}}
		s.Sale = seckill.View{Sale: seckill.Sale{
			Status: seckill.Exposed, EndAt: s.Now.Add(time.Hour),
			Rate: seckill.Rate{PermitsPerSecond: 1},
		}}
		known.of(s.State, nil)
		known.of(s.State, draw)
		_, s.gaps = known.of(State{}, draw) // of visits, which have no gaps
		require.Equal(t, s.Joined-int64(len(inGap)), s.Counted(s.Joined))
		s.Admitted = random.Int64N(s.Joined)
		ahead := int64(0)
		for position := s.Admitted + 1; position <= s.Joined; position++ {
			p := s.place(Seat{Number: draw.Number(position)})
			require.Equal(t, []any{position, ahead, time.Duration(ahead+1) * time.Second},
				[]any{p.Position, p.Ahead, p.ETA})
			if !inGap[position] {
				ahead++
			}
		}
	}
}

// TestStatus_AdmissionEndsWithTheSale checks that no place promises a purchase after the sale's
// end.
func TestStatus_AdmissionEndsWithTheSale(t *testing.T) {
	end := time.Now()
	of := func(until time.Duration, status seckill.Status, now time.Duration) Place {
		s := Status{State: State{Now: end.Add(now)}}
		s.Sale.Status, s.Sale.EndAt = status, end
		return s.place(Seat{Number: 1, Until: end.Add(until)})
	}
	before := -10 * time.Second
	require.Equal(t, Place{Number: 1, State: Admitted, Until: end}, of(1, seckill.Exposed, before))
	require.Equal(t, end.Add(-1), of(-1, seckill.Exposed, before).Until)
	require.Equal(t, Place{Number: 1, State: PlaceOver}, of(1, seckill.Exposed, 0))
	require.Equal(t, Place{Number: 1, State: PlaceOver}, of(1, seckill.Closed, before))
}
