package httpapi

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/query"
	"flashsale.dev/seckill/internal/ordersn"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/reservation"
)

// hangingStore is a MySQL that answers nothing before its caller gives up. Redis has no order.
type hangingStore struct {
	query.Redis
	query.Store
}

func (hangingStore) PendingAmong(
	context.Context, map[int64][]string,
) (map[string]reservation.OrderLine, error) {
	return nil, nil
}

func (hangingStore) OrdersByNumber(
	ctx context.Context, _ int64, _ []string,
) ([]order.Order, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestOrderStream_OutlivesAHangingMySQL checks that a queued order's stream ends with its client
// and not with a reading that times out.
func TestOrderStream_OutlivesAHangingMySQL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		keys, by := ordersn.NewKeys([]byte("a secret")), seckill.Actor{ID: "7", Role: seckill.Buyer}
		orders := query.NewService(query.Deps{
			Redis: hangingStore{}, Store: hangingStore{}, Keys: keys,
		})
		s := orderStream{eventStream: eventStream{api: &api{Deps: Deps{Orders: orders}}}, actor: by}
		s.order.OrderSn = keys.Issue(1, by.ID, time.Now()).String()
		defer time.Sleep(time.Minute) // until the lookup has ended, too
		require.True(t, s.refresh(t.Context()))
		gone, leave := context.WithCancel(t.Context())
		leave()
		require.False(t, s.refresh(gone))
	})
}
