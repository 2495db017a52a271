package faults

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testing/installation"
)

// moverHarms come while units go from one bucket of a split sale to another. All buyers are of one bucket, so that they do.
func moverHarms() []harm {
	list := []harm{
		moment("mover-killed-before-take", "consumer-redis", takes, false), // written down, and no unit has moved
		moment("mover-killed-after-take", "consumer-redis", takes, true),   // units that are in no bucket of Redis
		moment("mover-killed-in-transfer", "consumer-mysql", transfers, true),
		moment("mover-killed-before-give", "consumer-redis", gives, false), // MySQL has moved them, and Redis was not told
		moment("mover-killed-after-give", "consumer-redis", gives, true),
		{name: "redis-killed-in-a-move", rig: installation.Options{Wired: true}, over: 10 * time.Second, do: killRedisInAMove},
	}
	for i := range list {
		list[i].split, list[i].skewed = 4, true
	}
	return list
}

// takes and gives are the two ends of a move, as the release script gets them.
func takes(b []byte) bool {
	return bytes.Contains(b, []byte("evalsha")) && bytes.Contains(b, []byte("\r\ncarry\r\n"))
}

func gives(b []byte) bool {
	return bytes.Contains(b, []byte("evalsha")) && bytes.Contains(b, []byte("\r\ndelta\r\n"))
}

func transfers(b []byte) bool { return bytes.Contains(b, []byte("UPDATE sales SET total = total +")) }

// killRedisInAMove kills Redis three times when it has just taken units out of a bucket, and MySQL does not know yet.
func killRedisInAMove(t *testing.T, s *scene) {
	hit := 0
	for i := range 3 {
		s.until(float64(i)/4 + s.between(0.05, 0.25))
		sprung := make(chan struct{})
		s.Wires["consumer-redis"].Set(&installation.Trap{Match: takes, Pass: true, Sprung: func() { close(sprung) }})
		select {
		case <-sprung:
			hit++
			s.lasts(50 * time.Millisecond) // so that it has done what it was asked
		case <-s.over:
		}
		killRedis(t, s)
		s.Wires["consumer-redis"].Drop()
		s.Wires["consumer-redis"].Mend()
	}
	require.Positive(t, hit, "no unit was moved")
}
