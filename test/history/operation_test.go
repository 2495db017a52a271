package history

import (
	"fmt"
	"strings"
)

// kind is what an operation does.
type kind string

// Buyers call reserve, pay, cancel and status. The merchant calls add, cut, closing and ledger. The
// server itself does the last two: it applies a stock move some time after its cause.
const (
	reserve kind = "reserve"
	pay     kind = "pay"
	cancel  kind = "cancel"
	status  kind = "status"
	add     kind = "add"
	cut     kind = "cut"
	closing kind = "close"
	ledger  kind = "ledger"
	release kind = "release" // the units of a cancelled order are on sale again
	arrive  kind = "arrive"  // the units of an add are on sale
)

// request is the input of an operation.
type request struct {
	Kind  kind
	Sale  int
	Buyer int
	// Order numbers the orders of a sale, one for each random path. An add has a number too.
	Order int
	Units int
	// Overdue is set if the path may have expired before the answer.
	Overdue bool
	// Optional is set on a move whose cause has an unknown outcome.
	Optional bool
	// Drained is set on reads at the end, when no work is under way.
	Drained bool
}

func (r request) reads() bool { return r.Kind == status || r.Kind == ledger }

// answer is the output of an operation. The zero value is an unknown outcome.
type answer struct {
	Reason string
	// Order is the order whose number a 202 has; -1 if the number is not the one of the path.
	Order     int
	Status    string // of an order
	Held      int    // orders that a LIMIT_REACHED names
	Available int
	Total     int
	Pending   int
	Sold      int
}

func (a answer) unknown() bool { return a == answer{} }

// The reasons of the contract that the specification knows.
const (
	ok           = "OK"
	queued       = "QUEUED"
	soldOut      = "SOLD_OUT"
	limitReached = "LIMIT_REACHED"
	ended        = "ENDED"
	conflict     = "CONFLICT"
	badPath      = "BAD_PATH"
)

// effective reports whether an answer says that the operation had its effect.
func (a answer) effective() bool { return a.Reason == ok || a.Reason == queued }

// describe is an operation in one line.
func describe(in request, out answer) string {
	var b strings.Builder
	fmt.Fprintf(&b, "sale %d: %s", in.Sale, in.Kind)
	switch in.Kind {
	case reserve, pay, cancel, status, release:
		fmt.Fprintf(&b, " order %d of buyer %d, %d units", in.Order, in.Buyer, in.Units)
	case add, cut, arrive:
		fmt.Fprintf(&b, " %d, %d units", in.Order, in.Units)
	}
	switch {
	case in.Kind == release || in.Kind == arrive:
	case out.unknown():
		b.WriteString(" -> unknown")
	case in.Kind == ledger:
		fmt.Fprintf(&b, " -> total %d, available %d, pending %d, sold %d", out.Total,
			out.Available, out.Pending, out.Sold)
	case out.Reason == soldOut:
		fmt.Fprintf(&b, " -> %s, available %d", out.Reason, out.Available)
	case out.Reason == limitReached:
		fmt.Fprintf(&b, " -> %s, %d orders", out.Reason, out.Held)
	default:
		fmt.Fprintf(&b, " -> %s %s", out.Reason, out.Status)
	}
	return b.String()
}
