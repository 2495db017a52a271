package redisstore

import (
	"context"
	"fmt"
)

// Retire forgets a sale that is over for good; false where Redis has not that epoch of it, or something is under way still.
// Paths that were used answer as they did until their day is over, as long as the sale is remembered: retire no sale earlier.
func (s *Store) Retire(ctx context.Context, goodsID, epoch int64) (bool, error) {
	k := keysOf(goodsID)
	done, err := s.retire.Run(ctx, s.client, []string{k.sale(), k.buyers(), k.pending(), k.moves(), k.outbox()}, epoch).
		Bool()
	if err != nil {
		return false, fmt.Errorf("forget a sale in redis: %w", err)
	}
	return done, nil
}
