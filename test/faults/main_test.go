package faults

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testing/installation"
	"flashsale.dev/seckill/internal/testing/servers"
)

var suite = servers.NewSuite()

var (
	seedFlag   = flag.Uint64("faults.seed", 1, "the first seed")
	seedsFlag  = flag.Uint64("faults.seeds", 1, "so many seeds from the first on, for each harm")
	unitsFlag  = flag.Int64("faults.units", 400, "units on sale")
	buyersFlag = flag.Int("faults.buyers", 1200, "buyers who rush")
	harmsFlag  = flag.String("faults.names", "", `comma list of harms; "all"; three of them if empty`)
	onFlag     = flag.String("faults.on", "", `which servers are several: a comma list of redis-cluster, rabbit-cluster, mysql-group; "clusters" is all`)
	outFlag    = flag.String("faults.out", "", "file to which the line of each run is added")
)

func TestMain(m *testing.M) { os.Exit(installation.Around(m, suite)) }

// inCI are the harms of a plain go test: one of each kind of server that forgets or dies.
var inCI = []string{"api-killed", "consumer-killed", "redis-flushall"}

func TestFaults(t *testing.T) {
	land, err := installation.ParseLand(*onFlag)
	require.NoError(t, err)
	for _, h := range chosen(t) {
		h.rig.Land = h.rig.Land.With(land)
		if why := h.notOn(h.rig.Land); why != "" {
			fmt.Printf("faults: fault=%s is not for %s: %s\n", h.name, h.rig.Land, why)
			continue
		}
		for seed := *seedFlag; seed < *seedFlag+*seedsFlag; seed++ {
			t.Run(fmt.Sprintf("%s/%d", h.name, seed), func(t *testing.T) { run(t, h, seed) })
		}
	}
}

func chosen(t *testing.T) []harm {
	if *harmsFlag == "all" {
		return harms()
	}
	names := inCI
	if *harmsFlag != "" {
		names = strings.Split(*harmsFlag, ",")
	}
	list := harms()
	var some []harm
	for _, name := range names {
		i := slices.IndexFunc(list, func(h harm) bool { return h.name == name })
		if i < 0 {
			t.Fatalf("there is no harm %q", name)
		}
		some = append(some, list[i])
	}
	return some
}
