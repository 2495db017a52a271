package gate_test

import (
	"flag"
	"testing"

	"go.uber.org/goleak"

	"flashsale.dev/seckill/internal/testing/servers"
)

var env = servers.NewSuite()

func TestMain(m *testing.M) {
	// rapid prints the seed of a failed property, so it needs no file in the source tree.
	flag.Parse()
	if err := flag.Set("rapid.nofailfile", "true"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(env.Around(m))
}
