package faults

import (
	"testing"
	"time"

	"flashsale.dev/seckill/internal/testing/installation"
)

// wires are the pairs that speak to each other.
var wires = []string{"api-redis", "api-rabbit", "api-mysql", "consumer-redis", "consumer-rabbit", "consumer-mysql"}

func wireHarms() []harm {
	var list []harm
	for _, wire := range wires {
		list = append(list, harm{name: "cut-" + wire, rig: installation.Options{Wired: true}, do: func(_ *testing.T, s *scene) {
			s.until(s.between(0.1, 0.7))
			s.Wires[wire].Cut()
			s.lasts(5 * time.Second)
			s.Wires[wire].Mend()
		}})
	}
	return append(list, harm{name: "slow-wires", rig: installation.Options{Wired: true}, over: 10 * time.Second, do: func(_ *testing.T, s *scene) {
		for _, wire := range s.Wires {
			wire.Slow(200 * time.Millisecond)
		}
		s.lasts(10 * time.Second)
		for _, wire := range s.Wires {
			wire.Slow(0)
		}
	}})
}
