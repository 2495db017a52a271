package ordersn

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestNumber_ContainsGoodsAndEpoch(t *testing.T) {
	m := NewMinter([]byte("secret"))
	rapid.Check(t, func(t *rapid.T) {
		goods := rapid.Int64Min(1).Draw(t, "goods")
		epoch := rapid.Int64Range(0, 1<<32-1).Draw(t, "epoch")
		sn, err := m.Mint(goods, epoch)
		require.NoError(t, err)
		require.Len(t, sn, Len)
		require.Regexp(t, `^[0-9A-Za-z-]{1,64}$`, sn)
		n, err := m.Parse(sn)
		require.NoError(t, err)
		require.Equal(t, goods, n.GoodsID)
		require.Equal(t, epoch, n.Epoch)
		require.WithinDuration(t, time.Now(), n.MadeAt(), time.Minute)
	})
}

// TestNumber_SortsByTime checks that each number is greater than the numbers that were minted
// before it.
func TestNumber_SortsByTime(t *testing.T) {
	m := NewMinter([]byte("secret"))
	last := ""
	for range 1000 {
		sn, err := m.Mint(7, 1)
		require.NoError(t, err)
		require.Greater(t, sn, last)
		last = sn
	}
}

// TestParse_RejectsForeignNumbers checks that Parse rejects numbers that are malformed, changed or
// minted with another secret.
func TestParse_RejectsForeignNumbers(t *testing.T) {
	m := NewMinter([]byte("secret"))
	sn, err := m.Mint(42, 3)
	require.NoError(t, err)
	lastBit := sn[:Len-1] + string("0123456789abcdefghijklmnopqrstuv"[strings.IndexByte("0123456789abcdefghijklmnopqrstuv", sn[Len-1])^1])
	other, err := NewMinter([]byte("another")).Mint(42, 3)
	require.NoError(t, err)
	for name, s := range map[string]string{
		"empty":                      "",
		"short":                      sn[:Len-1],
		"long":                       sn + "0",
		"upper case":                 strings.ToUpper(sn),
		"outside the alphabet":       sn[:Len-1] + "z",
		"the unused bits of the end": lastBit,
		"another secret's":           other,
		"line break inside":          sn[:10] + "\n" + sn[11:],
	} {
		_, err := m.Parse(s)
		require.ErrorIs(t, err, ErrForeign, name)
	}
	for i := range Len {
		c := byte('0')
		if sn[i] == c {
			c = '1'
		}
		_, err := m.Parse(sn[:i] + string(c) + sn[i+1:])
		require.ErrorIs(t, err, ErrForeign, "character %d changed", i)
	}
}

// FuzzParse checks that every accepted text is the only encoding of its number.
func FuzzParse(f *testing.F) {
	m := NewMinter([]byte("secret"))
	sn, _ := m.Mint(1, 1)
	f.Add(sn)
	f.Fuzz(func(t *testing.T, s string) {
		if n, err := m.Parse(s); err == nil && m.encode(n) != s {
			t.Fatalf("%q parsed, but is written %q", s, m.encode(n))
		}
	})
}
