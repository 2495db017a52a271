package rabbit

import (
	"errors"
	"sync"
	"time"
)

// The prefetch counts messages and not bytes, and RabbitMQ accepts messages of 16 MiB (before
// version 4: 128 MiB) by default. A full prefetch of a foreign publisher's messages would not fit
// into memory, and the queue would deliver it to the next process again.
const (
	// maxHeld is how many bytes a stream may hold. Beyond that it ends, and the queue's next stream
	// has the prefetch fewMessages for fewFor.
	maxHeld     = 64 << 20
	fewMessages = 4
	fewFor      = 30 * time.Second
)

// errTooLarge is the reason for which a stream ended itself.
var errTooLarge = errors.New("the messages in flight have more than 64 MiB, too much for orders: " +
	"taking few at a time; another program publishes to our queue")

// held counts the bytes of the messages that are delivered and not acknowledged.
type held struct {
	mu       sync.Mutex
	messages []heldMessage // by tag
	bytes    int
}

type heldMessage struct {
	tag   uint64
	bytes int
}

// add counts a message, and returns the bytes of all.
func (h *held) add(tag uint64, bytes int) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.messages = append(h.messages, heldMessage{tag, bytes})
	h.bytes += bytes
	return h.bytes
}

// acknowledge ends the counting of a message and of all before it.
func (h *held) acknowledge(tag uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for len(h.messages) > 0 && h.messages[0].tag <= tag {
		h.bytes -= h.messages[0].bytes
		h.messages = h.messages[1:]
	}
}
