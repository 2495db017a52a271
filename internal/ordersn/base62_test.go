package ordersn

import (
	"crypto/rand"
	"math/big"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
)

// TestEncode62_MatchesBig compares with package big, whose digits have a before A.
func TestEncode62_MatchesBig(t *testing.T) {
	swap := func(r rune) rune {
		if unicode.IsUpper(r) {
			return unicode.ToLower(r)
		}
		return unicode.ToUpper(r)
	}
	inputs := [][numberBytes]byte{{}, {numberBytes - 1: 1}, {0: 1}, {1: 0xff}, {2: 0x80}}
	for range 1000 {
		var b [numberBytes]byte
		_, _ = rand.Read(b[:])
		inputs = append(inputs, b)
	}
	largest := [numberBytes]byte{}
	for i := range largest {
		largest[i] = 0xff
	}
	for _, b := range append(inputs, largest) {
		text := strings.Map(swap, new(big.Int).SetBytes(b[:]).Text(62))
		text = strings.Repeat("0", Len-len(text)) + text
		require.Equal(t, text, encode62(b))
		back, ok := decode62(text)
		require.True(t, ok)
		require.Equal(t, b, back)
	}
}

func TestDecode62_RejectsOtherTexts(t *testing.T) {
	largest := [numberBytes]byte{}
	for i := range largest {
		largest[i] = 0xff
	}
	last := encode62(largest)
	next := last[:Len-1] + string(digits[strings.IndexByte(digits, last[Len-1])+1])
	for name, text := range map[string]string{
		"short": last[1:], "long": "0" + last, "empty": "",
		"one too large": next, "largest digits": strings.Repeat("z", Len),
		"no digit": "-" + last[1:], "not ASCII": "é" + last[2:],
		"after the last digit": strings.Repeat("0", Len-1) + "{",
	} {
		_, ok := decode62(text)
		require.False(t, ok, name)
	}
}
