package redisstore

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/message"
	"flashsale.dev/seckill/internal/order/outbox"
)

// WithEntries returns those of the goods whose outbox has entries. It reads them in one pipeline.
// It leaves out goods whose master does not answer, and returns an error then.
func (s *Store) WithEntries(ctx context.Context, goodsIDs []int64) (found []int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, order.RedisDeadline)
	defer cancel()
	pipe, lengths := s.client.Pipeline(), make([]*redis.IntCmd, len(goodsIDs))
	for i, id := range goodsIDs {
		lengths[i] = pipe.XLen(ctx, keysOf(id).outbox())
	}
	if _, err = pipe.Exec(ctx); err != nil {
		err = fmt.Errorf("read the lengths of outboxes in redis: %w", err)
	}
	for i, id := range goodsIDs {
		if lengths[i].Val() > 0 {
			found = append(found, id)
		}
	}
	return found, err
}

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
		entries = append(entries, outbox.Entry{ID: m.ID, Entries: bodyOf(m)})
	}
	return entries, nil
}

// bodyOf joins the arrays of an outbox entry: b, b1, b2 and so on.
func bodyOf(m redis.XMessage) []byte {
	arrays := make([][]byte, len(m.Values))
	for i := range arrays {
		field := "b"
		if i > 0 {
			field += strconv.Itoa(i)
		}
		array, _ := m.Values[field].(string)
		arrays[i] = []byte(array)
	}
	return message.JoinArrays(arrays)
}

// Confirmed deletes outbox entries that RabbitMQ has confirmed.
func (s *Store) Confirmed(ctx context.Context, goodsID int64, ids ...string) error {
	if err := s.client.XDel(ctx, keysOf(goodsID).outbox(), ids...).Err(); err != nil {
		return fmt.Errorf("remove confirmed entries from the outbox in redis: %w", err)
	}
	return nil
}
