package sqlstore

import (
	"testing"

	"go.uber.org/goleak"

	"flashsale.dev/seckill/internal/testing/servers"
)

var env = servers.NewSuite()

func TestMain(m *testing.M) { goleak.VerifyTestMain(env.Around(m)) }
