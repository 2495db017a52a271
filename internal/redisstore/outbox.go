package redisstore

import (
	"context"
	"fmt"
	"time"

	"flashsale.dev/seckill/internal/order/outbox"
)

// Unconfirmed reads at most count outbox entries of a goods that are at least age old by Redis'
// clock, oldest first. An id ahead of the clock counts as old: the clock has stepped back since,
// and the age is unknown. To publish such an entry early is harmless; to wait for its time is not.
func (s *Store) Unconfirmed(
	ctx context.Context, goodsID int64, age time.Duration, count int64,
) ([]outbox.Entry, error) {
	now, err := s.serverTime(ctx, keysOf(goodsID))
	if err != nil {
		return nil, fmt.Errorf("ask redis for the time: %w", err)
	}
	messages, err := s.client.XRangeN(ctx, keysOf(goodsID).outbox(), "-", "+", count).Result()
	if err != nil {
		return nil, fmt.Errorf("read the outbox in redis: %w", err)
	}
	entries := make([]outbox.Entry, 0, len(messages))
	for _, m := range messages {
		if at := streamTime(m.ID); at.After(now.Add(-age)) && !at.After(now) {
			continue
		}
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
