package redisstore

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// endedRests is a set of goods ids. It has no slot of a sale, so that one command asks for all.
	endedRests = "sk:ended-rests"
	// endedRestsKept is the life of the set after the last call of EndRest. Every process reads the
	// set more often, and a short outage is over by then.
	endedRestsKept = 10 * time.Second
)

// EndRest makes the workers of all processes serve a sale that may be at rest.
func (s *Store) EndRest(ctx context.Context, goodsID int64) error {
	_, err := s.client.TxPipelined(ctx, func(p redis.Pipeliner) error {
		p.SAdd(ctx, endedRests, goodsID)
		p.Expire(ctx, endedRests, endedRestsKept)
		return nil
	})
	if err != nil {
		return fmt.Errorf("end the rest of a sale: %w", err)
	}
	return nil
}

// EndedRests lists the sales of EndRest calls. It forgets them endedRestsKept after the last call.
func (s *Store) EndedRests(ctx context.Context) (goodsIDs []int64, err error) {
	err = s.client.SMembers(ctx, endedRests).ScanSlice(&goodsIDs)
	if err != nil {
		return nil, fmt.Errorf("list ended rests: %w", err)
	}
	return goodsIDs, nil
}
