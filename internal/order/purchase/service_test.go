package purchase_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/purchase"
	"flashsale.dev/seckill/internal/ordersn"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/reservation"
)

// repeated is Redis, MySQL and the broker for a path that was used before.
type repeated struct {
	redis
	pending, written bool
	lookup, publish  error // of MySQL and of the broker
	published        int
}

func (r *repeated) Pending(
	context.Context, int64, string,
) (reservation.OrderLine, bool, error) {
	return reservation.OrderLine{}, r.pending, nil
}

func (r *repeated) Written(context.Context, int64, string) (bool, error) {
	return r.written, r.lookup
}

func (r *repeated) Publish(context.Context, int64, []byte) error {
	r.published++
	return r.publish
}

// TestPlace_RepeatedPathIsConfirmedWithItsOrder checks that a pending order is published again, as
// the first message may be lost, and that any other order must have a row.
func TestPlace_RepeatedPathIsConfirmedWithItsOrder(t *testing.T) {
	failed := errors.New("no answer")
	for name, c := range map[string]struct {
		repeated
		reason    seckill.Reason
		published int
	}{
		"pending":             {repeated{pending: true}, "", 1},
		"pending, queue down": {repeated{pending: true, publish: order.ErrQueueDown}, "", 1},
		"pending, no confirm": {repeated{pending: true, publish: failed}, seckill.Unavailable, 1},
		"written":             {repeated{written: true}, "", 0},
		"neither":             {repeated{}, seckill.Unavailable, 0},
		"no answer of MySQL":  {repeated{lookup: failed}, seckill.Unavailable, 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := c.repeated
			r.batches, r.verdict = make(chan batch, 1), reservation.Repeated
			keys := ordersn.NewKeys([]byte("0123456789abcdef0123456789abcdef"))
			service := purchase.NewService(sales{}, &r, &r, &r, keys, nil, nil, nil, time.Second,
				slog.New(slog.DiscardHandler))
			number := keys.Issue(goodsID, "1", time.Now())
			sn, err := service.Place(t.Context(), purchase.Request{
				GoodsID: goodsID, Buyer: seckill.Actor{ID: "1"}, Path: number.Path(), Quantity: 1,
			})
			require.Equal(t, c.reason, seckill.ReasonOf(err))
			require.Equal(t, c.published, r.published)
			if c.reason == "" {
				require.Equal(t, number.String(), sn)
			}
		})
	}
}
