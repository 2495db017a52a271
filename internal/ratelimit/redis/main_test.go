package redislimit_test

import (
	"testing"

	"go.uber.org/goleak"

	"flashsale.dev/seckill/internal/testenv"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(testenv.NewSuite().Around(m)) }
