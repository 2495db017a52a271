package sqlstore

import (
	"context"
	"sync"
	"time"
)

// slotsOfSale bounds the transactions of this process that hold or await the lock of one sale's
// row. Each has a connection. While another process sleeps with that lock, other sales still get
// connections.
const slotsOfSale = 4

// slotWait bounds the wait for a slot, as MySQL bounds that for the row (innodb_lock_wait_timeout).
const slotWait = 5 * time.Second

// saleSlots counts the transactions of each sale. A sale has an entry while a transaction runs or
// waits.
type saleSlots struct {
	mu    sync.Mutex
	sales map[int64]*saleSlot
}

type saleSlot struct {
	taken chan struct{}
	users int // that run or wait
}

// acquire takes a slot of a sale. It waits for one until ctx ends, or for slotWait. The caller must
// call release.
func (s *saleSlots) acquire(ctx context.Context, goodsID int64) (release func(), err error) {
	s.mu.Lock()
	slot := s.sales[goodsID]
	if slot == nil {
		slot = &saleSlot{taken: make(chan struct{}, slotsOfSale)}
		s.sales[goodsID] = slot
	}
	slot.users++
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, slotWait)
	defer cancel()
	select {
	case slot.taken <- struct{}{}:
		return func() {
			<-slot.taken
			s.leave(goodsID, slot)
		}, nil
	case <-ctx.Done():
		s.leave(goodsID, slot)
		return nil, ctx.Err()
	}
}

func (s *saleSlots) leave(goodsID int64, slot *saleSlot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if slot.users--; slot.users == 0 {
		delete(s.sales, goodsID)
	}
}
