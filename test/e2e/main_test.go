package e2e

import (
	"os"
	"testing"

	"flashsale.dev/seckill/internal/testing/installation"
	"flashsale.dev/seckill/internal/testing/servers"
)

var suite = servers.NewSuite()

func TestMain(m *testing.M) { os.Exit(installation.Around(m, suite)) }
