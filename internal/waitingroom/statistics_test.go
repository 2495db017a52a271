package waitingroom

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// The seeds of these tests are fixed, so that each run computes the same figures.
const draws = 1000

// requireUniform requires that counts of equally likely results deviate as chance does: chi-square
// is between its quantiles of 0.1 % and 99.9 %. Too even counts fail too.
func requireUniform(t *testing.T, counts []int, name string) {
	t.Helper()
	sum := 0
	for _, c := range counts {
		sum += c
	}
	expected, chi := float64(sum)/float64(len(counts)), 0.0
	for _, c := range counts {
		chi += (float64(c) - expected) * (float64(c) - expected) / expected
	}
	// the approximation of Wilson and Hilferty
	quantile := func(z float64) float64 {
		df := float64(len(counts) - 1)
		return df * math.Pow(1-2/(9*df)+z*math.Sqrt(2/(9*df)), 3)
	}
	t.Logf("%s: chi-square %.1f, %.1f to %.1f allowed", name, chi, quantile(-3.09), quantile(3.09))
	require.Greater(t, chi, quantile(-3.09), name)
	require.Less(t, chi, quantile(3.09), name)
}

func TestDraw_ChiSquareOfFirstAndLast(t *testing.T) {
	for _, size := range []uint32{20, 1000, 20_000, 65_536, 1_000_000} {
		const bins = 20
		first, last := make([]int, bins), make([]int, bins)
		for i := range draws {
			d := NewDraw(seedOf(i), nil, size)
			first[(d.Position(1)-1)*bins/int64(size)]++
			last[(d.Position(int64(size))-1)*bins/int64(size)]++
		}
		requireUniform(t, first, fmt.Sprintf("the first of %d", size))
		requireUniform(t, last, fmt.Sprintf("the last of %d", size))
	}
}

// TestDraw_EveryOrderOfAFewIsAsLikely counts whole permutations.
func TestDraw_EveryOrderOfAFewIsAsLikely(t *testing.T) {
	for size, orders := range map[uint32]int{2: 2, 3: 6, 4: 24, 5: 120} {
		index, counts := map[string]int{}, make([]int, orders)
		for i := range 50 * 120 {
			d, order := NewDraw(seedOf(i), nil, size), ""
			for number := range int64(size) {
				order += fmt.Sprint(d.Position(number + 1))
			}
			if _, known := index[order]; !known {
				index[order] = len(index)
			}
			counts[index[order]]++
		}
		if size == 2 { // one degree of freedom is too few for the approximation
			require.InDelta(t, counts[0], counts[1], 2*3.3*math.Sqrt(6000)/2)
			continue
		}
		requireUniform(t, counts, fmt.Sprintf("orders of %d", size))
	}
}

// TestDraw_Serial counts the pairs of positions of neighbours: who joined one after another, or
// some numbers apart, must not stand together.
func TestDraw_Serial(t *testing.T) {
	const bins, size = 10, 2000
	for _, lag := range []int64{1, 2, 32, 64, 1000} {
		pairs := make([]int, bins*bins)
		for i := range draws {
			d := NewDraw(seedOf(i), nil, size)
			number := int64(i)%(size-lag) + 1
			for range 10 {
				a, b := (d.Position(number)-1)*bins/size, (d.Position(number+lag)-1)*bins/size
				pairs[a*bins+b]++
				number = (number+197)%(size-lag) + 1
			}
		}
		requireUniform(t, pairs, fmt.Sprintf("pairs %d apart", lag))
	}
}

func TestDraw_JoiningFirstWinsAsOftenAsJoiningLast(t *testing.T) {
	for _, c := range []struct {
		size  uint32
		units int64
	}{{2000, 500}, {20_000, 500}, {4096, 2048}} {
		first, last := 0, 0
		for i := range draws {
			d := NewDraw(seedOf(i), nil, c.size)
			if d.Position(1) <= c.units {
				first++
			}
			if d.Position(int64(c.size)) <= c.units {
				last++
			}
		}
		share := float64(c.units) / float64(c.size)
		deviation := math.Sqrt(draws * share * (1 - share))
		t.Logf("%d units, %d buyers: of %d the first won %d, the last %d, %.0f expected", c.units,
			c.size, draws, first, last, draws*share)
		require.InDelta(t, draws*share, first, 3.3*deviation)
		require.InDelta(t, draws*share, last, 3.3*deviation)
		require.InDelta(t, first, last, 3.3*math.Sqrt2*deviation)
	}
}
