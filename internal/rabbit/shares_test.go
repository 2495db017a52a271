package rabbit

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// queues stands in for the broker. It has the consumers of each shard in the order of their
// opening; the first one is active.
type queues struct {
	now       time.Time
	processes []*shares
	shards    [][]opened
	alive     int // processes that the broker counts
	handOvers int
}

// opened is a stream of a process.
type opened struct {
	process int
	*stream
}

func newQueues(shards int) *queues {
	return &queues{now: time.Unix(1, 0), shards: make([][]opened, shards)}
}

func (q *queues) open(process, shard int) {
	st := &stream{handedOver: make(chan struct{})}
	q.processes[process].add(st)
	q.shards[shard] = append(q.shards[shard], opened{process, st})
}

func (q *queues) join() {
	q.processes, q.alive = append(q.processes, newShares(len(q.shards))), q.alive+1
	for shard := range q.shards {
		q.open(len(q.processes)-1, shard)
	}
}

func (q *queues) leave(process int) {
	for shard, all := range q.shards {
		var left []opened
		for _, o := range all {
			if o.process != process {
				left = append(left, o)
			}
		}
		q.shards[shard] = left
	}
	q.processes[process] = newShares(len(q.shards))
	q.alive--
}

// second passes a second: the broker delivers to the active consumers, and the processes hand over.
func (q *queues) second() {
	q.now = q.now.Add(time.Second)
	for _, all := range q.shards {
		all[0].activeSince.CompareAndSwap(0, q.now.UnixNano())
	}
	for _, s := range q.processes {
		s.balance(q.alive, q.now)
	}
	for shard, all := range q.shards {
		select {
		case <-all[0].handedOver:
			q.handOvers++
			q.shards[shard] = all[1:]
			q.open(all[0].process, shard)
		default:
		}
	}
}

// active counts the shards of each process.
func (q *queues) active() map[int]int {
	count := map[int]int{}
	for _, all := range q.shards {
		count[all[0].process]++
	}
	return count
}

// requireSpread lets a minute pass, and requires that n processes have their share from then on.
func (q *queues) requireSpread(t *testing.T, n int) {
	t.Helper()
	for range 60 {
		q.second()
	}
	settled, share := q.handOvers, (len(q.shards)+n-1)/n
	for range 60 {
		q.second()
	}
	require.Equal(t, settled, q.handOvers, "shards move although they are spread")
	for process, shards := range q.active() {
		require.LessOrEqual(t, shards, share, "process %d of %d: %v", process, n, q.active())
	}
}

func TestShares_SpreadWhenProcessesJoinAndLeave(t *testing.T) {
	for _, shards := range []int{1, 4, 16} {
		q := newQueues(shards)
		for n := 1; n <= 6; n++ {
			q.join()
			q.requireSpread(t, n)
		}
		q.leave(0)
		q.requireSpread(t, 5)
	}
}

// TestShares_AConsumerThatIsNeverActiveCostsFewHandOvers has a consumer that the broker counts and
// never activates. Two processes then always have more shards than a third. After an hour each of
// them hands shards over once a minute at most.
func TestShares_AConsumerThatIsNeverActiveCostsFewHandOvers(t *testing.T) {
	q := newQueues(16)
	q.join()
	q.join()
	q.alive++
	hour := func() int {
		before := q.handOvers
		for range 3600 {
			q.second()
		}
		return q.handOvers - before
	}
	hour()
	surplus := 16 - 2*6
	require.LessOrEqual(t, hour(), 2*60*surplus)
}
