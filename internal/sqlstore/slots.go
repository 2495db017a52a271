package sqlstore

import (
	"context"
	"sync"
)

// slotsOfSale is how many transactions of one sale this process has at once. They wait for the
// sale's row one after the other, each with a connection. A process that sleeps with that lock must
// not take all connections of the others from their other sales.
const slotsOfSale = 4

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

// acquire takes a slot of a sale. It waits for one until ctx ends. The caller must call release.
func (s *saleSlots) acquire(ctx context.Context, goodsID int64) (release func(), err error) {
	s.mu.Lock()
	slot := s.sales[goodsID]
	if slot == nil {
		slot = &saleSlot{taken: make(chan struct{}, slotsOfSale)}
		s.sales[goodsID] = slot
	}
	slot.users++
	s.mu.Unlock()
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
