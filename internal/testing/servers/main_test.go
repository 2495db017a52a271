package servers_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"flashsale.dev/seckill/internal/testing/servers"
)

var env = servers.NewSuite()

func TestMain(m *testing.M) {
	if dir := os.Getenv(doomedDir); dir != "" {
		beDoomed(dir)
	}
	goleak.VerifyTestMain(env.Around(m))
}
