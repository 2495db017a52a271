package faults

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testing/installation"
	"flashsale.dev/seckill/internal/testing/netfault"
)

// momentFaults kill all programs of a kind around a certain request: before it is sent, or before
// it is answered. A proxy on the wire recognises the request, so the programs need no hook.
func momentFaults() []fault {
	return []fault{
		// The order is reserved, and only the outbox has it.
		moment("api-killed-before-publish", "api-rabbit", isPublish, false),
		moment("api-killed-before-confirm", "api-rabbit", isPublish, true),
		// The units are reserved, and no buyer has an answer.
		moment("api-killed-in-reserve", "api-redis", isReserve, true),
		moment("consumer-killed-before-commit", "consumer-mysql", isCommit, false),
		moment("consumer-killed-in-commit", "consumer-mysql", isCommit, true),
		moment("consumer-killed-before-settle", "consumer-redis", isSettle, false),
		moment("consumer-killed-before-ack", "consumer-redis", isSettle, true),
		{
			name: "consumer-killed-20-times", options: installation.Options{Wired: true},
			spread: 20 * time.Second, inject: killTwentyTimes,
		},
	}
}

// isPublish recognises the header of AMQP's basic.publish.
func isPublish(b []byte) bool { return bytes.Contains(b, []byte{0, 60, 0, 40}) }

func isCommit(b []byte) bool { return bytes.Contains(b, []byte("\x03COMMIT")) }

func isInsert(b []byte) bool {
	return bytes.Contains(b, []byte("INSERT INTO `orders`")) ||
		bytes.Contains(b, []byte("INSERT INTO orders"))
}

func isReserve(b []byte) bool {
	return bytes.Contains(b, []byte("evalsha")) && bytes.Contains(b, []byte(":outbox"))
}

func isSettle(b []byte) bool {
	return bytes.Contains(b, []byte("evalsha")) && bytes.Contains(b, []byte(":pending")) &&
		!bytes.Contains(b, []byte(":buyers"))
}

// moment kills all programs at the first end of a wire three times. Each time it waits for a random
// share of promises and then for the first request that matches. If executed is set, the server
// executes that request before the programs die; otherwise the server never receives it.
func moment(name, wire string, match func([]byte) bool, executed bool) fault {
	return fault{
		name: name, options: installation.Options{Wired: true}, spread: 10 * time.Second,
		inject: func(t *testing.T, r *run) {
			programs, hits := r.APIs, 0
			if strings.HasPrefix(wire, "consumer-") {
				programs = r.Consumers
			}
			for i := range 3 {
				r.untilPromised(float64(i)/4 + r.random(0.05, 0.25))
				reached := setTrap(r.Wires[wire], match, executed)
				select {
				case <-reached:
					hits++
				case <-r.ended:
				}
				if executed {
					time.Sleep(50 * time.Millisecond) // the server needs less
				}
				kill(t, programs)
				r.Wires[wire].Drop()
				r.Wires[wire].Restore()
				start(t, programs)
			}
			require.Positive(t, hits, "no such request was seen")
		},
	}
}

// setTrap blocks a wire at the first request that matches: behind that request if pass is set, else
// before it. Then it closes the channel that it has returned.
func setTrap(wire *netfault.Proxy, match func([]byte) bool, pass bool) <-chan struct{} {
	reached := make(chan struct{})
	wire.SetTrap(&netfault.Trap{Match: match, Pass: pass, Sprung: func() { close(reached) }})
	return reached
}

// killTwentyTimes kills all consumers whenever one of them is about to write orders. No order is
// written in between, so the broker delivers the same messages more than twenty times, which is
// its default delivery limit.
func killTwentyTimes(t *testing.T, r *run) {
	wire := r.Wires["consumer-mysql"]
	r.untilPromised(r.random(0.1, 0.6))
	for i := range 20 {
		reached := setTrap(wire, isInsert, false)
		if i > 0 {
			start(t, r.Consumers)
		}
		select {
		case <-reached:
		case <-time.After(patience):
			t.Fatalf("no order was about to be written in round %d", i)
		}
		kill(t, r.Consumers)
		wire.Drop()
		wire.Restore()
	}
	start(t, r.Consumers)
}
