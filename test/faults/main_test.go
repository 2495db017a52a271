package faults

import (
	"flag"
	"os"
	"testing"

	"flashsale.dev/seckill/internal/testing/installation"
	"flashsale.dev/seckill/internal/testing/servers"
)

var suite = servers.NewSuite()

var (
	seedFlag   = flag.Uint64("faults.seed", 1, "the first seed")
	seedsFlag  = flag.Uint64("faults.seeds", 1, "number of seeds for each fault")
	unitsFlag  = flag.Int64("faults.units", 400, "units on sale")
	buyersFlag = flag.Int("faults.buyers", 1200, "buyers")
	outFlag    = flag.String("faults.out", "", "file to which a line for each run is added")
	onFlag     = flag.String("faults.on", "",
		`comma list of redis-cluster, rabbit-cluster, mysql-group; "clusters" is all of them`)
)

func TestMain(m *testing.M) { os.Exit(installation.Around(m, suite)) }
