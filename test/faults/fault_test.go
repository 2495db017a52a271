package faults

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testing/buyers"
	"flashsale.dev/seckill/internal/testing/installation"
	"flashsale.dev/seckill/internal/testing/must"
	"flashsale.dev/seckill/test/faults/check"
)

// fault is one failure, or sequence of failures, that a run injects into an installation.
type fault struct {
	name    string
	options installation.Options // at least two APIs and two consumers are started
	spread  time.Duration        // the buyers arrive within this time; 6 s if 0
	// all buyers may wait at once: for servers that are down for long
	concurrent bool
	limit      int64 // units that one buyer may have; 1 if 0
	shards     int   // order queues; the default if 0
	// the sale starts this long after its creation; a minute before if 0
	starts time.Duration
	// the sale ends this long after its creation; after an hour if 0
	ends        time.Duration
	clockOffset time.Duration // how far the clocks of the API hosts are ahead
	allow       check.Allowance

	prepare func(t *testing.T, r *run) // runs before the first buyer arrives; may be nil
	// inject injects the fault while buyers arrive. It returns once every broken server works
	// again.
	inject func(t *testing.T, r *run)
	// afterRecovery runs while buyers still arrive, once the sale has recovered; may be nil.
	afterRecovery func(t *testing.T, r *run)
	// checkReport checks the answers that buyers got, once the sale is drained; may be nil.
	checkReport func(t *testing.T, r *run, report buyers.Report)
}

// namesFlag selects faults.
var namesFlag = flag.String("faults.names", "",
	`comma list of faults; "all"; those of a plain go test if empty`)

// plainFaults are the faults of a plain go test: one for each kind of process that holds state.
var plainFaults = []string{"api-killed", "consumer-killed", "redis-flushall"}

// allFaults lists every fault, in the order of reports/faults.md.
func allFaults() []fault {
	return slices.Concat(programFaults(), releaseFaults(), clockFaults(), redisFaults(),
		failoverFaults(), clusterFaults(), manySalesFaults(), rabbitFaults(), rabbitNodeFaults(),
		mysqlFaults(), groupFaults(), messageFaults(), wireFaults(), momentFaults())
}

// selected lists the faults that namesFlag selects.
func selected(t *testing.T) []fault {
	names := plainFaults
	switch *namesFlag {
	case "":
	case "all":
		return allFaults()
	default:
		names = strings.Split(*namesFlag, ",")
	}
	list := allFaults()
	chosen := make([]fault, 0, len(names))
	for _, name := range names {
		i := slices.IndexFunc(list, func(f fault) bool { return f.name == name })
		require.GreaterOrEqual(t, i, 0, "there is no fault %q", name)
		chosen = append(chosen, list[i])
	}
	return chosen
}

// unsupported returns the reason why a topology does not support the fault, or "".
func (f fault) unsupported() string {
	if f.options.Topology.Has(installation.RedisCluster) && f.options.Failover {
		return "a Redis Cluster has no Sentinels; see the faults redis-cluster-…"
	}
	return ""
}

// TestFaults injects each selected fault into an installation, and checks the guarantees after it.
func TestFaults(t *testing.T) {
	topology := must.Get(installation.ParseTopology(*onFlag))(t)
	for _, f := range selected(t) {
		f.options.Topology |= topology
		if why := f.unsupported(); why != "" {
			fmt.Printf("faults: %s does not run on %s: %s\n", f.name, f.options.Topology, why)
			continue
		}
		for seed := *seedFlag; seed < *seedFlag+*seedsFlag; seed++ {
			t.Run(fmt.Sprintf("%s/%d", f.name, seed), func(t *testing.T) { execute(t, f, seed) })
		}
	}
}
