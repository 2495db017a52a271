package installation

import (
	"fmt"
	"testing"
)

// firstHost is the last number of the first API's loopback address, where each has one of its own.
const firstHost = 11

// JoinAPI starts one more API beside those that are there, and returns it when it is ready.
func (r *Installation) JoinAPI(t testing.TB) *Program {
	t.Helper()
	addr := freePort(t)
	if r.hosts {
		addr = freePortOf(t, fmt.Sprintf("127.0.0.%d", firstHost+len(r.APIs)))
	}
	p := startProgramOn(t, addr, "api", "SECKILL_HTTP_ADDR", r.apiEnv)
	r.APIs = append(r.APIs, p)
	return p
}

// JoinConsumer starts one more consumer beside those that are there, and returns it when it is ready.
func (r *Installation) JoinConsumer(t testing.TB) *Program {
	t.Helper()
	p := StartProgram(t, "order-consumer", "SECKILL_OPS_ADDR", r.consumerEnv)
	r.Consumers = append(r.Consumers, p)
	return p
}
