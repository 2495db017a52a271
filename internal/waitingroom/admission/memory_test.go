package admission_test

import (
	"flag"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
)

var crowd = flag.Int("room.buyers", 25_000, "buyers who join the line of the memory test")

// TestService_NodeKeepsNothingForABuyer lets a crowd join a line and poll their places on one node.
// The heap of the node, which is this process, is afterwards as large as after the first of them.
// The smallest map of buyers would take more than eight bytes for each.
func TestService_NodeKeepsNothingForABuyer(t *testing.T) {
	h := open(t, 1, time.Hour)
	buyers := int64(0)
	join := func(n int) {
		var all errgroup.Group
		all.SetLimit(256)
		for range n {
			buyers++
			id := fmt.Sprintf("018f4e6a-0000-7000-8000-%012d", buyers)
			all.Go(func() error {
				p, err := h.service.Join(t.Context(), h.id, id, "")
				for range 2 {
					if err == nil {
						_, err = h.service.Find(t.Context(), h.id, id, p.Ticket)
					}
				}
				return err
			})
		}
		require.NoError(t, all.Wait())
	}
	join(5000) // of which pools, connections and caches have their size
	before := heap()
	join(*crowd)
	grown := heap() - before
	t.Logf("%d buyers joined, and the heap has %d bytes more than %d", *crowd, grown, before)
	require.Less(t, grown, int64(8**crowd))
	require.EqualValues(t, buyers, h.state().Joined)
}

// heap returns the bytes of the reachable objects. The second collection empties the pools.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
