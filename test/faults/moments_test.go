package faults

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testing/installation"
	"flashsale.dev/seckill/internal/testing/netfault"
)

// momentHarms kill all programs of a kind at one exact moment: when a certain request is about to go out over the wire, or
// has gone out and its answer has not come. No program needs a hook for it.
func momentHarms() []harm {
	return []harm{
		moment("api-killed-before-publish", "api-rabbit", publish, false), // reserved, and in nobody's hands but the outbox'
		moment("api-killed-before-confirm", "api-rabbit", publish, true),
		moment("api-killed-in-reserve", "api-redis", reserve, true), // taken, and nobody was told
		moment("consumer-killed-before-commit", "consumer-mysql", commit, false),
		moment("consumer-killed-in-commit", "consumer-mysql", commit, true),
		moment("consumer-killed-before-settle", "consumer-redis", settle, false),
		moment("consumer-killed-before-ack", "consumer-redis", settle, true),
		{name: "consumer-killed-20-times", rig: installation.Options{Wired: true}, over: 20 * time.Second, do: killTwentyTimes},
	}
}

func publish(b []byte) bool { return bytes.Contains(b, []byte{0, 60, 0, 40}) } // basic.publish
func commit(b []byte) bool  { return bytes.Contains(b, []byte("\x03COMMIT")) }
func insert(b []byte) bool {
	return bytes.Contains(b, []byte("INSERT INTO `orders`")) || bytes.Contains(b, []byte("INSERT INTO orders"))
}

func reserve(b []byte) bool {
	return bytes.Contains(b, []byte("evalsha")) && bytes.Contains(b, []byte(":outbox"))
}

func settle(b []byte) bool {
	return bytes.Contains(b, []byte("evalsha")) && bytes.Contains(b, []byte(":pending")) && !bytes.Contains(b, []byte(":buyers"))
}

// moment kills three times, each time at the first such request after a moment of the seed's choice.
func moment(name, wire string, match func([]byte) bool, pass bool) harm {
	return harm{name: name, rig: installation.Options{Wired: true}, over: 10 * time.Second, do: func(t *testing.T, s *scene) {
		programs, hit := s.APIs, 0
		if wire[0] == 'c' {
			programs = s.Consumers
		}
		for i := range 3 {
			s.until(float64(i)/4 + s.between(0.05, 0.25))
			sprung := make(chan struct{})
			s.Wires[wire].Set(&netfault.Trap{Match: match, Pass: pass, Sprung: func() { close(sprung) }})
			select {
			case <-sprung:
				hit++
			case <-s.over:
			}
			if pass {
				s.lasts(50 * time.Millisecond) // so that the server has done what it was asked
			}
			for _, p := range programs {
				require.NoError(t, p.Kill())
			}
			s.Wires[wire].Drop()
			s.Wires[wire].Mend()
			for _, p := range programs {
				p.Start(t)
			}
		}
		require.Positive(t, hit, "no such request was seen")
	}}
}

// killTwentyTimes kills all consumers each time the first of them is about to write orders. Nothing is written between, so
// the broker delivers the same messages more than twenty times: more often than its own default limit would bear.
func killTwentyTimes(t *testing.T, s *scene) {
	t.Helper()
	wire := s.Wires["consumer-mysql"]
	s.until(s.between(0.1, 0.6))
	for i := range 20 {
		sprung := make(chan struct{})
		wire.Set(&netfault.Trap{Match: insert, Sprung: func() { close(sprung) }})
		if i > 0 {
			for _, p := range s.Consumers {
				p.Start(t)
			}
		}
		select {
		case <-sprung:
		case <-time.After(patience):
			t.Fatalf("no order was about to be written for the %dth time", i+1)
		}
		for _, p := range s.Consumers {
			require.NoError(t, p.Kill())
		}
		wire.Drop()
		wire.Mend()
	}
	for _, p := range s.Consumers {
		p.Start(t)
	}
}
