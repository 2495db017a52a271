package history

import (
	"fmt"

	"github.com/anishathalye/porcupine"
)

const (
	maxOrders = 64 // of a sale in one history
	maxBuyers = 8
	maxAdds   = 8
)

// orderState is what the specification knows of an order.
type orderState uint8

const (
	absent    orderState = iota
	reserved             // promised
	created              // promised, and a buyer has read that it is written
	paid                 //
	cancelled            // its units are on their way back
	released             // cancelled, and its units are on sale again
)

// addState is the state of the units that a merchant adds.
type addState uint8

const (
	noAdd   addState = iota
	added            // accepted, and not on sale yet
	arrived          // on sale
)

// sale is the state of one sale. It is comparable, which is how porcupine compares states.
type sale struct {
	total, available, limit int
	closed                  bool
	orders                  [maxOrders]orderState
	adds                    [maxAdds]addState
	units                   [maxBuyers]int // that a buyer holds
	held                    [maxBuyers]int // orders with units
}

// specification returns the sequential specification of a sale. Each step is atomic. The histories
// of different sales are judged apart.
func specification(units, limit int) porcupine.Model {
	return porcupine.Model{
		Partition: bySale,
		Init:      func() any { return sale{total: units, available: units, limit: limit} },
		Step: func(s, in, out any) (bool, any) {
			return step(s.(sale), in.(request), out.(answer))
		},
		DescribeOperation: func(in, out any) string {
			return describe(in.(request), out.(answer))
		},
		DescribeState: func(s any) string { return s.(sale).String() },
	}
}

func bySale(all []porcupine.Operation) [][]porcupine.Operation {
	var parts [][]porcupine.Operation
	for _, op := range all {
		n := op.Input.(request).Sale
		for len(parts) <= n {
			parts = append(parts, nil)
		}
		parts[n] = append(parts[n], op)
	}
	return parts
}

// step reports whether a sale in state s may answer so, and returns the state after it.
func step(s sale, in request, out answer) (bool, any) {
	next, expected := s.do(in)
	switch in.Kind {
	case reserve:
		return s.mayReserve(in, out, next, expected)
	case status:
		return s.mayRead(in, out)
	case ledger:
		return s.balances(out), s
	case release, arrive:
		return expected == ok || in.Optional, next
	}
	if out.Reason == conflict && s.maybeQueued(in) {
		return true, s
	}
	return out.unknown() || out.Reason == expected, next
}

// do applies an operation and returns the expected reason. A refused operation changes nothing.
func (s sale) do(in request) (sale, string) {
	switch in.Kind {
	case reserve:
		return s.reserve(in)
	case pay:
		return s.pay(in)
	case cancel:
		return s.cancel(in)
	case release:
		return s.release(in)
	case add:
		return s.add(in)
	case arrive:
		return s.arrive(in)
	case cut:
		return s.cut(in)
	case closing:
		s.closed = true
	}
	return s, ok
}

// reserve checks the same path before, the window, the buyer's limit and the stock, in this order.
func (s sale) reserve(in request) (sale, string) {
	switch {
	case s.orders[in.Order] != absent:
		return s, queued
	case s.closed:
		return s, ended
	case s.units[in.Buyer]+in.Units > s.limit:
		return s, limitReached
	case in.Units > s.available:
		return s, soldOut
	}
	s.orders[in.Order] = reserved
	s.available -= in.Units
	s.units[in.Buyer] += in.Units
	s.held[in.Buyer]++
	return s, queued
}

// mayReserve compares the data of an answer too. Only an overdue path without an order may be
// refused as expired.
func (s sale) mayReserve(in request, out answer, next sale, expected string) (bool, any) {
	switch {
	case out.unknown():
		return true, next
	case out.Reason == badPath:
		return in.Overdue && s.orders[in.Order] == absent, s
	case out.Reason != expected:
		return false, s
	case out.Reason == queued:
		return out.Order == in.Order, next
	case out.Reason == soldOut:
		return out.Available == s.available, s
	case out.Reason == limitReached:
		return out.Held == s.held[in.Buyer], s
	}
	return true, s
}

func (s sale) pay(in request) (sale, string) {
	switch s.orders[in.Order] {
	case reserved, created:
		s.orders[in.Order] = paid
	case absent, cancelled, released:
		return s, conflict
	}
	return s, ok
}

func (s sale) cancel(in request) (sale, string) {
	switch s.orders[in.Order] {
	case reserved, created:
		s.orders[in.Order] = cancelled
	case absent, paid:
		return s, conflict
	}
	return s, ok
}

// maybeQueued reports whether a change of an order may be refused because MySQL lacks the order.
func (s sale) maybeQueued(in request) bool {
	return (in.Kind == pay || in.Kind == cancel) && s.orders[in.Order] == reserved
}

// release returns the units of a cancelled order, once.
func (s sale) release(in request) (sale, string) {
	if s.orders[in.Order] != cancelled {
		return s, conflict
	}
	s.orders[in.Order] = released
	s.available += in.Units
	s.units[in.Buyer] -= in.Units
	s.held[in.Buyer]--
	return s, ok
}

func (s sale) add(in request) (sale, string) {
	if s.closed {
		return s, conflict
	}
	if s.adds[in.Order] == noAdd {
		s.adds[in.Order] = added
	}
	return s, ok
}

// arrive puts added units on sale, once.
func (s sale) arrive(in request) (sale, string) {
	if s.adds[in.Order] != added {
		return s, conflict
	}
	s.adds[in.Order] = arrived
	s.total, s.available = s.total+in.Units, s.available+in.Units
	return s, ok
}

func (s sale) cut(in request) (sale, string) {
	if s.closed || in.Units > s.available {
		return s, conflict
	}
	s.total, s.available = s.total-in.Units, s.available-in.Units
	return s, ok
}

// mayRead judges the status of an order. Once a buyer has read "created", it is not queued again.
// No fault of these histories may lose an order, so "failed" is never right.
func (s sale) mayRead(in request, out answer) (bool, any) {
	switch s.orders[in.Order] {
	case reserved:
		if out.Status == "created" {
			s.orders[in.Order] = created
			return true, s
		}
		return out.Status == "queued" && !in.Drained, s
	case created:
		return out.Status == "created", s
	case paid:
		return out.Status == "paid", s
	case cancelled, released:
		return out.Status == "cancelled", s
	}
	return false, s
}

// balances judges a ledger: Redis' numbers of one moment.
func (s sale) balances(out answer) bool {
	return out.Total == s.total && out.Available == s.available &&
		out.Pending+out.Sold == s.total-s.available
}

// String is the state as porcupine's picture shows it.
func (s sale) String() string {
	return fmt.Sprintf("total %d, available %d, closed %t, units of buyers %v", s.total,
		s.available, s.closed, s.units)
}
