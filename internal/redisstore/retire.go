package redisstore

import (
	"context"
	"fmt"

	"flashsale.dev/seckill/internal/seckill"
)

// Retire deletes a sale that is over, with its waiting room; false where Redis has another epoch or
// a newer version of the sale, or orders are still in flight. A call that failed is repeated whole.
func (s *Store) Retire(ctx context.Context, sale seckill.Sale) (bool, error) {
	k := keysOf(sale.GoodsID)
	done, err := s.retireKeys(ctx, sale,
		k.sale(), k.buyers(), k.pending(), k.moves(), k.outbox(), k.blocks())
	if !done || err != nil {
		return false, err
	}
	rooms, err := s.client.Exists(ctx, k.room()).Result()
	if err != nil || rooms == 0 {
		return err == nil, wrapRetire(err)
	}
	return s.retireRoom(ctx, sale)
}

// retireRoom deletes the waiting room of a sale. The room is last, so that a failed call is
// repeated.
func (s *Store) retireRoom(ctx context.Context, sale seckill.Sale) (bool, error) {
	k := keysOf(sale.GoodsID)
	const chunk = 512
	for from := uint32(0); from < roomBuckets; from += chunk {
		buckets := make([]string, chunk)
		for i := range buckets {
			buckets[i] = k.bucket(from + uint32(i))
		}
		if done, err := s.retireKeys(ctx, sale, buckets...); !done || err != nil {
			return false, err
		}
	}
	return s.retireKeys(ctx, sale, k.turns(), k.done(), k.gap(), k.late(), k.used(), k.room())
}

func (s *Store) retireKeys(
	ctx context.Context, sale seckill.Sale, keys ...string,
) (bool, error) {
	k := keysOf(sale.GoodsID)
	done, err := s.retire.Run(ctx, s.client,
		append([]string{k.sale(), k.pending(), k.outbox()}, keys...),
		sale.Epoch, sale.Version).Bool()
	return done, wrapRetire(err)
}

func wrapRetire(err error) error {
	if err != nil {
		err = fmt.Errorf("delete a sale in redis: %w", err)
	}
	return err
}
