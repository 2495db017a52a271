package waitingroom

import (
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"flashsale.dev/seckill/internal/testing/property"
)

const (
	goods, buyer = int64(7), "42"
	firstSecret  = "0123456789abcdef0123456789abcdef"
	secondSecret = "fedcba9876543210fedcba9876543210"
)

func TestTickets_NumberReadsWhatSignWrote(t *testing.T) {
	tickets := NewTickets([]byte(firstSecret))
	property.Check(t, func(t *rapid.T) {
		g, b, n := rapid.Int64().Draw(t, "goods"), rapid.StringMatching(`[!-~]{1,64}`).Draw(t, "buyer"),
			rapid.Int64().Draw(t, "number")
		ticket := tickets.Sign(g, b, n)
		if len(ticket) != ticketLen || url.PathEscape(ticket) != ticket {
			t.Fatalf("ticket %q", ticket)
		}
		if got, err := tickets.Number(ticket, g, b); err != nil || got != n {
			t.Fatalf("signed %d, read %d, %v", n, got, err)
		}
	})
}

func TestTickets_RefuseOthersAndForgeries(t *testing.T) {
	tickets := NewTickets([]byte(firstSecret))
	ticket := tickets.Sign(goods, buyer, 1)
	_, err := tickets.Number(ticket, goods+1, buyer)
	require.ErrorIs(t, err, errBadTicket)
	_, err = tickets.Number(ticket, goods, buyer+"1")
	require.ErrorIs(t, err, errBadTicket)
	_, err = tickets.Number(ticket, 42, "7")
	require.ErrorIs(t, err, errBadTicket, "goods and buyer are not interchangeable")
	for i := range ticket {
		other := byte('A')
		if ticket[i] == other {
			other = 'B'
		}
		_, err := tickets.Number(ticket[:i]+string(other)+ticket[i+1:], goods, buyer)
		require.ErrorIs(t, err, errBadTicket, "character %d", i)
	}
	for _, text := range []string{
		"", "1", ticket[1:], ticket + "A", "2" + ticket[1:], ticket[:len(ticket)-1] + "=",
		ticket[:len(ticket)-1] + "\n", "1" + strings.Repeat("\n", ticketLen-1),
	} {
		_, err := tickets.Number(text, goods, buyer)
		require.ErrorIs(t, err, errBadTicket, "%q", text)
	}
}

func TestTickets_KeyRing(t *testing.T) {
	first, second := []byte(firstSecret), []byte(secondSecret)
	ticket := NewTickets(first).Sign(goods, buyer, 9)
	number, err := NewTickets(second, first).Number(ticket, goods, buyer)
	require.NoError(t, err)
	require.Equal(t, int64(9), number)
	require.NotEqual(t, ticket, NewTickets(second, first).Sign(goods, buyer, 9), "the first signs")
	_, err = NewTickets(second).Number(ticket, goods, buyer)
	require.ErrorIs(t, err, errBadTicket)
	require.Panics(t, func() { NewTickets() })
}

// FuzzTickets_Number requires that a ticket has one spelling: Sign's.
func FuzzTickets_Number(f *testing.F) {
	tickets := NewTickets([]byte(firstSecret), []byte(secondSecret))
	f.Add(tickets.Sign(goods, buyer, 1))
	f.Add(tickets.Sign(goods, buyer, 1<<62))
	f.Add(NewTickets([]byte(secondSecret)).Sign(goods, buyer, 3))
	f.Add(strings.Repeat("\n", ticketLen))
	f.Fuzz(func(t *testing.T, ticket string) {
		number, err := tickets.Number(ticket, goods, buyer)
		if err != nil {
			require.Zero(t, number)
			return
		}
		bySecond := NewTickets([]byte(secondSecret)).Sign(goods, buyer, number)
		require.Contains(t, []string{tickets.Sign(goods, buyer, number), bySecond}, ticket)
	})
}

func BenchmarkTickets(b *testing.B) {
	tickets := NewTickets([]byte(firstSecret))
	ticket := tickets.Sign(goods, buyer, 1)
	b.Run("Sign", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			tickets.Sign(goods, buyer, 1)
		}
	})
	b.Run("Number", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := tickets.Number(ticket, goods, buyer); err != nil {
				b.Fatal(err)
			}
		}
	})
}
