package redisstore

import (
	"context"
	"fmt"
)

// Retire deletes a sale that is over; false where Redis has another epoch or orders are still in
// flight.
func (s *Store) Retire(ctx context.Context, goodsID, epoch int64) (bool, error) {
	k := keysOf(goodsID)
	done, err := s.retire.Run(ctx, s.client,
		[]string{k.sale(), k.buyers(), k.pending(), k.moves(), k.outbox()}, epoch).
		Bool()
	if err != nil {
		return false, fmt.Errorf("delete a sale in redis: %w", err)
	}
	return done, nil
}
