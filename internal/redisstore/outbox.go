package redisstore

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"flashsale.dev/seckill/internal/order/outbox"
)

// Unconfirmed reads at most count outbox entries of a goods that are at least age old by Redis'
// clock, oldest first.
func (s *Store) Unconfirmed(
	ctx context.Context, goodsID int64, age time.Duration, count int64,
) ([]outbox.Entry, error) {
	now, err := s.serverTime(ctx, keysOf(goodsID))
	if err != nil {
		return nil, fmt.Errorf("ask redis for the time: %w", err)
	}
	until := strconv.FormatInt(now.Add(-age).UnixMilli(), 10)
	messages, err := s.client.XRangeN(ctx, keysOf(goodsID).outbox(), "-", until, count).Result()
	if err != nil {
		return nil, fmt.Errorf("read the outbox in redis: %w", err)
	}
	entries := make([]outbox.Entry, 0, len(messages))
	for _, m := range messages {
		body, _ := m.Values["b"].(string)
		entries = append(entries, outbox.Entry{ID: m.ID, Entries: []byte(body)})
	}
	return entries, nil
}

// Confirmed deletes outbox entries that RabbitMQ has confirmed.
func (s *Store) Confirmed(ctx context.Context, goodsID int64, ids ...string) error {
	if err := s.client.XDel(ctx, keysOf(goodsID).outbox(), ids...).Err(); err != nil {
		return fmt.Errorf("remove confirmed entries from the outbox in redis: %w", err)
	}
	return nil
}
