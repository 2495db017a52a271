package bench

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/capacity"
)

// point is so many calls with so many things in them, and what they came to.
type point struct{ calls, things, value float64 }

// fit finds what a call and a thing cost.
func fit(points []point) capacity.Sized {
	var rows [][]float64
	var values []float64
	for _, p := range points {
		rows, values = append(rows, []float64{p.calls, p.things}), append(values, p.value)
	}
	if len(rows) == 0 {
		return capacity.Sized{}
	}
	x := costs(rows, values)
	return capacity.Sized{Call: x[0], Each: x[1]}
}

// costs finds what one of each column costs, where each row says how many of each came to a value. The differences weigh by their share of
// the value, and nothing costs less than nothing: least squares by turning one cost after the other.
func costs(rows [][]float64, values []float64) []float64 {
	x := make([]float64, len(rows[0]))
	left := make([]float64, len(rows)) // what the costs so far don't explain, as a share
	for i := range left {
		left[i] = 1
	}
	share := func(i, j int) float64 {
		if values[i] <= 0 {
			return 0
		}
		return rows[i][j] / values[i]
	}
	for range 200_000 {
		for j := range x {
			var up, down float64
			for i := range rows {
				up, down = up+share(i, j)*left[i], down+share(i, j)*share(i, j)
			}
			if down == 0 {
				continue
			}
			better := max(0, x[j]+up/down)
			for i := range rows {
				left[i] -= (better - x[j]) * share(i, j)
			}
			x[j] = better
		}
	}
	return x
}

// met is the trip, in microseconds, with which so many each second travel in groups of so many: group's formula turned round.
func met(perSecond, group float64) float64 {
	low, high := 0.0, 1000.0
	for range 60 {
		if x := (low + high) / 2; x+math.Exp(-x) < group {
			low = x
		} else {
			high = x
		}
	}
	return low / perSecond * 1e6
}

func TestFitFindsBothCosts(t *testing.T) {
	s := fit([]point{{10, 10, 10*7 + 10*2}, {5, 50, 5*7 + 50*2}, {2, 200, 2*7 + 200*2}})
	require.InDelta(t, 7, s.Call, 1e-6)
	require.InDelta(t, 2, s.Each, 1e-6)
	require.InDelta(t, 500, met(4000, 2+math.Exp(-2)), 0.01)
	s = fit([]point{{10, 10, 10}, {1, 100, 100}})
	require.InDelta(t, 0, s.Call, 1e-6, "no call costs less than nothing")
	require.InDelta(t, 1, s.Each, 1e-6)
	x := costs([][]float64{{1, 2, 3}, {2, 1, 7}, {5, 5, 1}, {1, 9, 9}}, []float64{4 + 12, 8 + 28, 20 + 4, 4 + 36})
	require.InDeltaSlice(t, []float64{4, 0, 4}, x, 1e-6)
}
