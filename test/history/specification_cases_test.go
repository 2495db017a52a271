package history

import (
	"slices"
	"strings"
	"testing"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"
)

// at is an operation of sale 0 with the times of its call and its answer.
func at(call, end int64, in request, out answer) porcupine.Operation {
	return porcupine.Operation{Input: in, Output: out, Call: call, Return: end}
}

// then adds an operation that is called after all other answers.
func then(ops []porcupine.Operation, in request, out answer) []porcupine.Operation {
	call := int64(1)
	for _, op := range ops {
		if op.Return != never {
			call = max(call, op.Return+1)
		}
	}
	return append(slices.Clone(ops), at(call, call+1, in, out))
}

func buys(order, buyer, units int) request {
	return request{Kind: reserve, Order: order, Buyer: buyer, Units: units}
}

func on(k kind) request { return request{Kind: k, Units: 1} }

func promised(order int) answer { return answer{Reason: queued, Order: order} }

func balance(total, available int) answer {
	return answer{Reason: ok, Total: total, Available: available, Sold: total - available}
}

// never is the time of an answer that did not arrive.
const never = 1 << 40

// TestSpecification_ExplainsLegalHistories judges histories of a sale of two units and a limit of
// one, and the same histories with a last answer that contradicts them.
func TestSpecification_ExplainsLegalHistories(t *testing.T) {
	done, refused, none := answer{Reason: ok}, answer{Reason: conflict}, answer{Reason: soldOut}
	reads := func(state string) answer { return answer{Reason: ok, Status: state} }
	full, more := answer{Reason: limitReached, Held: 1}, answer{Reason: limitReached, Held: 2}
	missing := answer{Reason: "NOT_FOUND"}
	first := then(nil, buys(0, 0, 1), promised(0))
	both := then(first, buys(1, 1, 1), promised(1))
	paying, cancelling := then(first, on(pay), done), then(first, on(cancel), done)
	open := []porcupine.Operation{at(1, never, buys(0, 0, 1), answer{})}
	released := append(slices.Clone(cancelling), at(3, 4, on(release), answer{}))
	adding := then(nil, on(add), done)
	arrives := append(slices.Clone(adding), at(1, 2, on(arrive), answer{}))
	closed, end := then(nil, on(closing), done), then(first, on(closing), done)
	again, cutting := then(first, buys(0, 0, 1), promised(0)), then(nil, on(cut), done)
	read := then(first, on(status), reads("created"))
	last, drained := on(ledger), request{Kind: status, Drained: true}
	overdue := request{Kind: reserve, Units: 1, Overdue: true}
	for name, c := range map[string]struct {
		before       []porcupine.Operation
		in           request
		legal, wrong answer
	}{
		"the last unit":         {first, buys(1, 1, 1), promised(1), none},
		"no unit":               {both, buys(2, 2, 1), none, promised(2)},
		"too few units":         {first, buys(2, 2, 1), promised(2), answer{Reason: soldOut}},
		"path before its end":   {nil, buys(0, 0, 1), promised(0), answer{Reason: badPath}},
		"path after its end":    {nil, overdue, answer{Reason: badPath}, answer{Reason: ended}},
		"buyer's limit":         {first, buys(1, 0, 1), full, promised(1)},
		"limit of another":      {first, buys(1, 1, 1), promised(1), full},
		"orders at the limit":   {first, buys(1, 0, 1), full, more},
		"repeated path":         {first, buys(0, 0, 1), promised(0), promised(-1)},
		"repeated, units":       {again, last, balance(2, 1), balance(2, 0)},
		"unknown and taken":     {open, last, balance(2, 1), balance(2, 0)},
		"unknown and not taken": {open, last, balance(2, 2), balance(2, 0)},
		"cancelled":             {cancelling, on(cancel), done, refused},
		"paid":                  {paying, on(pay), done, refused},
		"cancel of paid":        {paying, on(cancel), refused, done},
		"pay of cancelled":      {cancelling, on(pay), refused, done},
		"released":              {released, last, balance(2, 2), balance(2, 1)},
		"queued":                {first, on(pay), refused, none},
		"created":               {read, on(pay), done, refused},
		"created, read again":   {read, on(status), reads("created"), reads("queued")},
		"promised, read":        {first, on(status), reads("queued"), reads("failed")},
		"promised, drained":     {first, drained, reads("created"), reads("queued")},
		"promised, found":       {first, on(status), reads("created"), missing},
		"closed":                {closed, buys(0, 0, 1), answer{Reason: ended}, promised(0)},
		"closed, repeated":      {end, buys(0, 0, 1), promised(0), answer{Reason: ended}},
		"not closed":            {nil, buys(0, 0, 1), promised(0), answer{Reason: ended}},
		"closed, change":        {closed, on(add), refused, done},
		"added":                 {arrives, last, balance(3, 3), balance(2, 2)},
		"cut":                   {cutting, last, balance(1, 1), balance(2, 1)},
		"cut of sold units":     {both, on(cut), refused, done},
	} {
		t.Run(name, func(t *testing.T) {
			judged := func(out answer) bool {
				return porcupine.CheckOperations(specification(2, 1), then(c.before, c.in, out))
			}
			require.True(t, judged(c.legal))
			require.False(t, judged(c.wrong))
		})
	}
}

// TestSpecification_AllowsForConcurrency judges answers that are legal only while another operation
// is under way.
func TestSpecification_AllowsForConcurrency(t *testing.T) {
	done := answer{Reason: ok}
	first := then(nil, buys(0, 0, 1), promised(0))
	cancelling := append(then(first, on(cancel), done), at(3, 10, on(release), answer{}))
	for name, c := range map[string]struct {
		before []porcupine.Operation // until time 10
		in     request
		out    answer
	}{
		"sold before the close": {
			[]porcupine.Operation{at(1, 10, on(closing), done)}, buys(0, 0, 1), promised(0),
		},
		"read before an arrival": {
			append(then(nil, on(add), done), at(1, 10, on(arrive), answer{})),
			on(ledger), balance(2, 2),
		},
		"read before a release": {cancelling, on(ledger), balance(2, 1)},
		"read before a cut": {
			[]porcupine.Operation{at(1, 10, on(cut), done)}, on(ledger), balance(2, 2),
		},
	} {
		t.Run(name, func(t *testing.T) {
			judged := func(call int64) bool {
				ops := append(slices.Clone(c.before), at(call, call+1, c.in, c.out))
				return porcupine.CheckOperations(specification(2, 1), ops)
			}
			require.True(t, judged(8))
			require.False(t, judged(11))
		})
	}
}

// TestUnexplained_ListsOperationsWithoutAPlace checks what a rejection prints.
func TestUnexplained_ListsOperationsWithoutAPlace(t *testing.T) {
	ops := then(then(nil, buys(0, 0, 1), promised(0)), buys(1, 0, 1), promised(1))
	result, text := judge(t, then(ops, buys(2, 0, 2), promised(2)))
	require.Equal(t, porcupine.Illegal, result)
	placed, missing, found := strings.Cut(text, "without a place")
	require.True(t, found, text)
	require.Contains(t, placed, "reserve order 1 of buyer 0, 1 units -> QUEUED")
	require.Contains(t, missing, "reserve order 2 of buyer 0, 2 units -> QUEUED")
}
