package waitingroom

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"flashsale.dev/seckill/internal/testing/property"
)

// seedOf returns the i-th of a fixed series of seeds, so that statistical tests are deterministic.
func seedOf(i int) Seed {
	var s Seed
	binary.BigEndian.PutUint64(s[:], uint64(i))
	return s
}

// requireBijection requires that the draw permutes the numbers from 1 to its size, and that Number
// is the inverse of Position.
func requireBijection(t *testing.T, d *Draw) {
	t.Helper()
	n := int64(d.Size())
	taken := make([]bool, n+1)
	for number := int64(1); number <= n; number++ {
		p := d.Position(number)
		if p < 1 || p > n || taken[p] || d.Number(p) != number {
			require.Fail(t, "no bijection", "size %d, number %d, position %d", n, number, p)
		}
		taken[p] = true
	}
}

func TestDraw_IsABijection(t *testing.T) {
	for size := range uint32(600) {
		requireBijection(t, NewDraw(seedOf(1), []byte("digest"), size))
	}
	for _, edge := range []uint32{1 << 10, 1 << 12, 1 << 16, 1 << 18, 1_000_000} {
		for size := edge - 1; size <= edge+1; size++ {
			requireBijection(t, NewDraw(seedOf(2), nil, size))
		}
	}
}

func TestDraw_NumberInvertsPositionAtAnySize(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		size := rapid.Uint32().Draw(t, "size")
		d := NewDraw(seedOf(rapid.Int().Draw(t, "seed")), []byte(rapid.String().Draw(t, "digest")),
			size)
		number := rapid.Int64Range(-1, 1<<33).Draw(t, "number")
		p := d.Position(number)
		if got := d.Number(p); got != number {
			t.Fatalf("number %d has position %d, which has number %d", number, p, got)
		}
		if in := number >= 1 && number <= int64(size); in && (p < 1 || p > int64(size)) {
			t.Fatalf("number %d of %d has position %d", number, size, p)
		} else if !in && p != number {
			t.Fatalf("number %d is not drawn, and has position %d", number, p)
		}
	})
}

func TestDraw_LargestSize(t *testing.T) {
	d := NewDraw(seedOf(3), nil, math.MaxUint32)
	for _, number := range []int64{1, 2, 1 << 31, math.MaxUint32 - 1, math.MaxUint32} {
		p := d.Position(number)
		require.LessOrEqual(t, p, int64(math.MaxUint32))
		require.Equal(t, number, d.Number(p))
	}
	require.Equal(t, int64(math.MaxUint32)+1, d.Position(math.MaxUint32+1))
}

// TestDraw_EqualsAnotherProgram holds the draw against positions that a Python program computed
// from the description of Draw. A page that verifies a draw must compute them too.
func TestDraw_EqualsAnotherProgram(t *testing.T) {
	var seed Seed
	for i := range seed {
		seed[i] = byte(i)
	}
	for _, c := range []struct {
		size      uint32
		positions []int64 // of the first, the middle and the last number
	}{
		{1, []int64{1, 1, 1}},
		{2, []int64{2, 2, 1}},
		{3, []int64{1, 2, 3}},
		{5, []int64{4, 5, 3}},
		{257, []int64{37, 159, 127}},
		{20000, []int64{4946, 4571, 15721}},
		{1000000, []int64{602361, 57134, 509215}},
		{4294967295, []int64{1743669994, 273199863, 3491949909}},
	} {
		d := NewDraw(seed, []byte("da39a3ee5e6b4b0d3255bfef95601890afd80709"), c.size)
		size := int64(c.size)
		got := []int64{d.Position(1), d.Position((size + 1) / 2), d.Position(size)}
		require.Equal(t, c.positions, got, "size %d", size)
	}
}

func TestDraw_DependsOnSeedDigestAndSize(t *testing.T) {
	order := func(seed int, digest string, size uint32) []int64 {
		d := NewDraw(seedOf(seed), []byte(digest), size)
		positions := make([]int64, 100)
		for i := range positions {
			positions[i] = d.Position(int64(i) + 1)
		}
		return positions
	}
	all := [][]int64{
		order(1, "a", 100), order(2, "a", 100), order(1, "b", 100), order(1, "", 100),
		order(1, "a", 101),
	}
	for i, one := range all {
		require.Equal(t, i, slices.IndexFunc(all, func(o []int64) bool {
			return slices.Equal(o, one)
		}))
	}
}

func TestDraw_PositionAllocatesNothing(t *testing.T) {
	d := NewDraw(seedOf(1), nil, 1_000_000)
	require.Zero(t, testing.AllocsPerRun(100, func() { d.Number(d.Position(77)) }))
}

func BenchmarkDraw_Position(b *testing.B) {
	for _, size := range []uint32{2, 20_000, 1_000_000, math.MaxUint32} {
		d := NewDraw(seedOf(1), nil, size)
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			b.ReportAllocs()
			number := int64(0)
			for b.Loop() {
				d.Position(number%int64(size) + 1)
				number += 7919
			}
		})
	}
}

func BenchmarkNewDraw(b *testing.B) {
	for _, size := range []uint32{2, 1_000_000, math.MaxUint32} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				NewDraw(Seed{}, nil, size)
			}
		})
	}
}
