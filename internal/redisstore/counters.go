package redisstore

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"flashsale.dev/seckill/internal/apierror"
	"flashsale.dev/seckill/internal/order/stats"
	"flashsale.dev/seckill/scripts/lua"
)

var _ stats.CounterStore = (*Store)(nil)

// rateWindowSeconds is the window of orders per second.
const rateWindowSeconds = 10

// AddCounts adds a node's counts of all sales in one pipeline (by EVAL: a pipeline cannot repeat
// EVALSHA). It ignores goods that Redis does not have. Counts of a sale whose master does not
// answer are lost.
func (s *Store) AddCounts(ctx context.Context, counts map[int64]*stats.Counts) error {
	script, pipe := lua.Source("counters"), s.client.Pipeline()
	for goodsID, c := range counts {
		args := []any{c.Orders}
		for reason, n := range c.Refusals {
			args = append(args, string(reason), n)
		}
		k := keysOf(goodsID)
		pipe.Eval(ctx, script, []string{k.sale(), k.counters(), k.orderRates()}, args...)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return fmt.Errorf("add counts in redis: %w", err)
	}
	return nil
}

// Rates reads the sums over all nodes: refusals by reason, and orders per second over the last
// rateWindowSeconds.
func (s *Store) Rates(ctx context.Context, goodsID int64) (stats.Rates, error) {
	k, rates := keysOf(goodsID), stats.Rates{Refusals: map[apierror.Reason]int64{}}
	now, err := s.serverTime(ctx, k)
	if err != nil {
		return rates, fmt.Errorf("ask redis for the time: %w", err)
	}
	pipe := s.client.Pipeline()
	refusals, orderCounts := pipe.HGetAll(ctx, k.counters()), pipe.HGetAll(ctx, k.orderRates())
	if _, err := pipe.Exec(ctx); err != nil {
		return rates, fmt.Errorf("read figures from redis: %w", err)
	}
	for reason, n := range refusals.Val() {
		count, err := strconv.ParseInt(n, 10, 64)
		if err != nil {
			return rates, fmt.Errorf("read figures from redis: %w", err)
		}
		if reason == "since" {
			rates.Since = time.Unix(count, 0)
			continue
		}
		rates.Refusals[apierror.Reason(reason)] = count
	}
	orders, last := int64(0), now.Unix()-1
	for second, n := range orderCounts.Val() {
		at, _ := strconv.ParseInt(second, 10, 64) // unreadable: 0, outside the window
		if count, _ := strconv.ParseInt(n, 10, 64); at > last-rateWindowSeconds && at <= last {
			orders += count
		}
	}
	rates.OrdersPerSecond = float64(orders) / rateWindowSeconds
	return rates, nil
}
