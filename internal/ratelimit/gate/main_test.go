package gate_test

import (
	"flag"
	"testing"

	"go.uber.org/goleak"

	"flashsale.dev/seckill/internal/testing/servers"
)

var env = servers.NewSuite()

func TestMain(m *testing.M) {
	// A property that fails prints its seed; it leaves no file in the tree.
	flag.Parse()
	if err := flag.Set("rapid.nofailfile", "true"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(env.Around(m))
}
