package query

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/reservation"
)

// partialRedis is a Redis of an open sale that returns some pending orders and an error.
type partialRedis map[string]reservation.OrderLine

func (r partialRedis) PendingAmong(
	context.Context, map[int64][]string,
) (map[string]reservation.OrderLine, error) {
	return r, errors.New("an error of the test")
}

func (r partialRedis) View(context.Context, int64) (seckill.View, error) {
	return seckill.View{Gate: seckill.GateOpen}, nil
}

// TestWithUncertain_UsesKnownLinesAfterAnError checks that a malformed line in Redis does not
// change the status of the other orders. If Redis fails, all keep the status of MySQL.
func TestWithUncertain_UsesKnownLinesAfterAnError(t *testing.T) {
	for want, redis := range map[order.Status]partialRedis{
		order.Queued: {"known": {}}, order.Created: nil,
	} {
		row := order.Order{GoodsID: 1, Status: order.Created, CreatedAt: time.Now()}
		known, malformed := row, row
		known.OrderSn, malformed.OrderSn = "known", "malformed"
		list := withUncertain(t.Context(), redis, []order.Order{malformed, known})
		require.Equal(t, []order.Status{order.Created, want},
			[]order.Status{list[0].Status, list[1].Status})
	}
}
