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
		list := withUncertain(t.Context(), dated{now: time.Now()}, redis,
			[]order.Order{malformed, known})
		require.Equal(t, []order.Status{order.Created, want},
			[]order.Status{list[0].Status, list[1].Status})
	}
}

// dated is a database with a clock of its own and one order, which was written a second ago.
type dated struct {
	Store
	now time.Time
}

func (d dated) Now(context.Context) (time.Time, error) { return d.now, nil }

func (d dated) OrdersOf(context.Context, string, string, int) ([]order.Order, error) {
	o := order.Order{GoodsID: 1, Status: order.Created, CreatedAt: d.now.Add(-time.Second)}
	o.OrderSn = "known"
	return []order.Order{o}, nil
}

// TestMine_NodesClockDoesNotJudgeUncertainOrders checks that a list has no order as created whose
// commit may be lost. The node's clock is ahead of the database's or behind it.
func TestMine_NodesClockDoesNotJudgeUncertainOrders(t *testing.T) {
	for _, ahead := range []time.Duration{5 * time.Minute, -5 * time.Minute} {
		s := NewService(Deps{
			Store: dated{now: time.Now().Add(-ahead)}, Redis: partialRedis{"known": {}},
		})
		list, err := s.Mine(t.Context(), seckill.Actor{ID: "7", Role: seckill.Buyer}, "", 1)
		require.NoError(t, err)
		require.Equal(t, order.Queued, list[0].Status, "the node's clock is %s ahead", ahead)
	}
}
