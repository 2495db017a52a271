package faults

import (
	"testing"
	"time"

	"flashsale.dev/seckill/internal/testing/installation"
)

// wires names the connections between programs and servers.
var wires = []string{
	"api-redis", "api-rabbit", "api-mysql", "consumer-redis", "consumer-rabbit", "consumer-mysql",
}

func wireFaults() []fault {
	var list []fault
	for _, wire := range wires {
		cut := midway(func(_ *testing.T, r *run) {
			r.Wires[wire].Cut()
			time.Sleep(5 * time.Second)
			r.Wires[wire].Restore()
		})
		list = append(list,
			fault{name: "cut-" + wire, options: installation.Options{Wired: true}, inject: cut})
	}
	return append(list, fault{
		name: "slow-wires", options: installation.Options{Wired: true}, spread: 10 * time.Second,
		inject: slowWires,
	})
}

// slowWires delays everything on every wire by 200 ms in each direction, for 10 s.
func slowWires(_ *testing.T, r *run) {
	for _, wire := range r.Wires {
		wire.Slow(200 * time.Millisecond)
	}
	time.Sleep(10 * time.Second)
	for _, wire := range r.Wires {
		wire.Slow(0)
	}
}
