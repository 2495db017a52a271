package redisstore

import (
	"context"
	"fmt"
)

// Retire deletes a sale that is over, with its waiting room; false where Redis has another epoch or
// orders are still in flight.
func (s *Store) Retire(ctx context.Context, goodsID, epoch int64) (bool, error) {
	k := keysOf(goodsID)
	if err := s.removeRoom(ctx, k); err != nil {
		return false, fmt.Errorf("delete a waiting room in redis: %w", err)
	}
	done, err := s.retire.Run(ctx, s.client,
		[]string{k.sale(), k.buyers(), k.pending(), k.moves(), k.outbox(), k.blocks()}, epoch).
		Bool()
	if err != nil {
		return false, fmt.Errorf("delete a sale in redis: %w", err)
	}
	return done, nil
}
