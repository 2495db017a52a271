package history

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"
)

// recorder collects the operations of one history. Its clock is the process's monotonic clock.
type recorder struct {
	began time.Time

	mu  sync.Mutex
	ops []porcupine.Operation
	// open lists operations without an answer. They return at the end of the history.
	open []porcupine.Operation
}

func newRecorder() *recorder { return &recorder{began: time.Now()} }

func (r *recorder) now() int64 { return int64(time.Since(r.began)) }

// add records an operation with its answer, which was just received.
func (r *recorder) add(client int, in request, out answer, call int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ops = append(r.ops, porcupine.Operation{
		ClientId: client, Input: in, Output: out, Call: call, Return: r.now(),
	})
}

// leaveOpen records an operation whose outcome stays unknown.
func (r *recorder) leaveOpen(in request, call int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.open = append(r.open, porcupine.Operation{Input: in, Output: answer{}, Call: call})
}

// applied records the moves that the server has applied by now: the release of each cancelled order
// and the arrival of each add. Where the outcome of the cause is unknown the move is optional.
func (r *recorder) applied() {
	moves := make(map[request]porcupine.Operation)
	for _, op := range r.open {
		expectMove(moves, op, true)
	}
	for _, op := range r.ops {
		if op.Output.(answer).effective() {
			expectMove(moves, op, false)
		}
	}
	for _, move := range moves {
		if move.Return = r.now(); move.Input.(request).Optional {
			r.open = append(r.open, move)
		} else {
			r.ops = append(r.ops, move)
		}
	}
}

// expectMove adds the move that an operation causes. Repeated operations cause one move.
func expectMove(moves map[request]porcupine.Operation, cause porcupine.Operation, optional bool) {
	in := cause.Input.(request)
	switch in.Kind {
	case cancel:
		in.Kind = release
	case add:
		in.Kind = arrive
	default:
		return
	}
	if earlier, known := moves[in]; known {
		cause.Call = min(cause.Call, earlier.Call)
	}
	move := in
	move.Optional = optional
	cause.Input, cause.Output = move, answer{}
	moves[in] = cause
}

// history returns all operations by the time of their calls. Operations without an answer return
// after all others, and have clients of their own, so that porcupine's picture shows them apart.
func (r *recorder) history(clients int) []porcupine.Operation {
	end, all := r.now(), slices.Clone(r.ops)
	for i, op := range r.open {
		op.ClientId, op.Return = clients+i, end
		all = append(all, op)
	}
	slices.SortFunc(all, func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
	return all
}
