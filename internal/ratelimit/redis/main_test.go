package redislimit_test

import (
	"testing"

	"go.uber.org/goleak"

	"flashsale.dev/seckill/internal/testing/servers"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(servers.NewSuite().Around(m)) }
