package redisstore

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/seckill/reservation"
)

// FuzzReadPending checks that every pending entry decodes to a reservation with the same bytes, or
// to an error.
func FuzzReadPending(f *testing.F) {
	f.Add(`1762862400000:2:{"orderSn":"06cq","buyerId":7,"quantity":2}`)
	f.Add("1:2:")
	f.Add("1762862400000:1:#1762862400000-0.1.32")
	f.Add("::{}")
	f.Add("0::#")
	f.Fuzz(func(t *testing.T, text string) {
		p, block, err := readPending(text)
		if err != nil {
			return
		}
		if block != "" {
			require.True(t, strings.HasSuffix(text, ":#"+block))
			return
		}
		require.True(t, strings.HasSuffix(text, ":"+string(p.Entry)))
		require.Positive(t, p.BuyerID)
		require.Positive(t, p.Quantity)
	})
}

// FuzzReadReply checks that every answer of a script decodes or is rejected. Each line of the input
// is a field. Numbers with an odd number of characters become integers.
func FuzzReadReply(f *testing.F) {
	f.Add("0\n1\n1762862400000\n10\n1-1\n0\n106cq\n5a b\n63", uint8(4))
	f.Add("0\n1\n1762862400000\n{\"title\":\"tea\"}\nexposed\n1\n2\n1\n10\n5\n3\n2\n1\n0\n",
		uint8(0))
	f.Add("3\n1\n5", uint8(1))
	f.Fuzz(func(t *testing.T, lines string, asked uint8) {
		var fields []any
		for line := range strings.SplitSeq(lines, "\n") {
			n, err := strconv.ParseInt(line, 10, 64)
			if err == nil && len(line)%2 == 1 {
				fields = append(fields, n)
			} else {
				fields = append(fields, line)
			}
		}
		if _, err := viewOf(1, fields); err == nil {
			require.GreaterOrEqual(t, len(fields), 15)
		}
		rs := make([]reservation.Reservation, asked)
		if g, err := readReserveResult(&reply{fields: fields}, rs); err == nil {
			require.Len(t, g.Verdicts, len(rs))
		}
		_ = streamTime(lines)
	})
}
