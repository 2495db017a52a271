package bench

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// rushBuyers is the number of buyers of the largest rush. A rush has a tenth as many units.
const rushBuyers = 100_000

// BenchmarkRush measures a whole rush of ten buyers for each unit, from the first request for a
// path to the last order in the database. The floor program answers as many requests and takes as
// many orders. Processor microseconds for a buyer are core-seconds for a million buyers.
func BenchmarkRush(b *testing.B) {
	c := newContest(b)
	for _, buyers := range []int{rushBuyers / 8, rushBuyers} {
		c.run(fmt.Sprint(buyers), func(b *testing.B) {
			measure := fmt.Sprintf("whole rush, %s buyers for %s units",
				thousands(float64(buyers)), thousands(float64(buyers/10)))
			all := contenders(c.products(), func(s side) measurement { return c.rush(s, buyers) })
			all = append(all, contenders([]side{c.floor}, func(s side) measurement {
				return c.floorRush(s, buyers)
			})...)
			compare(b, measure, "buyers", all...)
		})
	}
}

// rush plays one rush: every buyer asks for a path and buys with it. All units are sold and
// written.
func (c *contest) rush(s side, buyers int) measurement {
	c.b.Helper()
	goods := s.sale(int64(buyers / 10))
	requests := c.pathRequests(goods, buyers, inOrder)
	before, began := s.read(), time.Now()
	crowd(c.b, s.addr, connections, buyers, func(client *client, i int) error {
		return client.hurry(requests[i])
	})
	sold := s.written(goods)
	m := measurement{buyers, time.Since(began), s.since(before)}
	require.Equal(c.b, buyers/10, sold, "units were left in a rush of ten buyers for each")
	return m
}

// hurry asks for a path and buys with it, unless the sale is sold out.
func (c *client) hurry(request []byte) error {
	status, body, err := c.talk(request)
	if err != nil || status == http.StatusConflict {
		return err
	}
	next, err := purchaseOf(request, status, body)
	if err != nil {
		return err
	}
	status, body, err = c.talk(next)
	if err == nil && status != http.StatusAccepted && status != http.StatusConflict {
		err = fmt.Errorf("bought: %d %s", status, body)
	}
	return err
}

// floorRush answers as many requests as there are buyers, and takes both calls of every tenth.
func (c *contest) floorRush(s side, buyers int) measurement {
	c.b.Helper()
	refused := c.pathRequests("0", buyers-buyers/10, inOrder)
	won := c.pathRequests(s.sale(endless), buyers/10, inOrder)
	before, began := s.read(), time.Now()
	crowd(c.b, s.addr, connections, len(won), func(client *client, i int) error {
		return client.hurry(won[i])
	})
	play(c.b, s.addr, connections, len(refused), http.StatusConflict,
		func(i int) []byte { return refused[i] })
	s.written(s.sale(endless))
	return measurement{buyers, time.Since(began), s.since(before)}
}
