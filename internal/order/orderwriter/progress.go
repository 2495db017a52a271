package orderwriter

import "sync"

// progress acknowledges the first messages of a batch while the writer writes the others.
type progress struct {
	ack        func(n int) error
	doneBefore []int // see sorted

	mu      sync.Mutex
	written []bool
	next    int // the first goods that is not written
	acked   int // messages
	err     error
}

// end records the end of writing the goods at a place of the batch. Acknowledgements are
// cumulative, so a message waits until all goods before its own are written.
func (p *progress) end(place int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err == nil {
		p.err = err
	}
	p.written[place] = err == nil
	for p.next < len(p.written) && p.written[p.next] {
		p.next++
	}
	if p.err != nil || p.next == len(p.written) || p.doneBefore[p.next] <= p.acked {
		return
	}
	p.acked = p.doneBefore[p.next]
	p.err = p.ack(p.acked)
}
