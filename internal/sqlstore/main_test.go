package sqlstore

import (
	"testing"

	"go.uber.org/goleak"

	"flashsale.dev/seckill/internal/testenv"
)

var env = testenv.NewSuite()

func TestMain(m *testing.M) { goleak.VerifyTestMain(env.Around(m)) }
