package history

import (
	"flag"
	"os"
	"testing"

	"flashsale.dev/seckill/internal/testing/installation"
	"flashsale.dev/seckill/internal/testing/servers"
)

var suite = servers.NewSuite()

var (
	seedFlag  = flag.Uint64("history.seed", 1, "the first seed")
	seedsFlag = flag.Uint64("history.seeds", 1, "number of seeds for each fault")
	allFlag   = flag.Bool("history.all", false, "inject the faults that a plain go test leaves out")
)

func TestMain(m *testing.M) { os.Exit(installation.Around(m, suite)) }
