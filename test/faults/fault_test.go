package faults

import (
	"cmp"
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
	shards     int // order queues; the default if 0
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

// plainFaults are TestFaults' part of a plain go test: each kind of program, and Redis.
const plainFaults = "api-killed,consumer-killed,redis-flushall"

// allFaults lists every fault, in the order of reports/faults.md.
func allFaults() []fault {
	return slices.Concat(programFaults(), releaseFaults(), clockFaults(), redisFaults(),
		failoverFaults(), clusterFaults(), manySalesFaults(), rabbitFaults(), rabbitNodeFaults(),
		mysqlFaults(), groupFaults(), messageFaults(), wireFaults(), momentFaults())
}

// midway injects a fault once 10 to 70 % of the units are promised.
func midway(inject func(t *testing.T, r *run)) func(*testing.T, *run) {
	return func(t *testing.T, r *run) {
		r.untilPromised(r.random(0.1, 0.7))
		inject(t, r)
	}
}

// selected lists the faults that namesFlag selects, without those of TestRooms.
func selected(t *testing.T) []fault {
	list := allFaults()
	if *namesFlag == "all" {
		return list
	}
	var chosen []fault
	for name := range strings.SplitSeq(cmp.Or(*namesFlag, plainFaults), ",") {
		if isRoomFault(name) {
			continue
		}
		i := slices.IndexFunc(list, func(f fault) bool { return f.name == name })
		require.GreaterOrEqual(t, i, 0, "there is no fault %q", name)
		chosen = append(chosen, list[i])
	}
	return chosen
}

// TestFaults injects each selected fault into an installation, and checks the guarantees after it.
func TestFaults(t *testing.T) {
	topology := must.Get(installation.ParseTopology(*onFlag))(t)
	for _, f := range selected(t) {
		f.options.Topology |= topology
		if f.options.Topology.Has(installation.RedisCluster) && f.options.Failover {
			fmt.Printf("faults: %s does not run on %s: a Redis Cluster has no Sentinels; "+
				"see the faults redis-cluster-…\n", f.name, f.options.Topology)
			continue
		}
		for seed := *seedFlag; seed < *seedFlag+*seedsFlag; seed++ {
			t.Run(fmt.Sprintf("%s/%d", f.name, seed), func(t *testing.T) { execute(t, f, seed) })
		}
	}
}
