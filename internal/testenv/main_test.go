package testenv_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"flashsale.dev/seckill/internal/testenv"
)

var env = testenv.NewSuite()

func TestMain(m *testing.M) {
	if dir := os.Getenv(doomedDir); dir != "" {
		beDoomed(dir)
	}
	goleak.VerifyTestMain(env.Around(m))
}
