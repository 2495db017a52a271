package query

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/seckill/reservation"
)

// slowStore is Redis and MySQL with one status for all orders. A statement returns the status at
// its beginning, after the test has received its numbers.
type slowStore struct {
	Store
	Redis
	status  order.Status
	started chan []string
}

func (s *slowStore) PendingAmong(
	context.Context, map[int64][]string,
) (map[string]reservation.OrderLine, error) {
	return nil, nil
}

func (s *slowStore) OrdersByNumber(
	_ context.Context, _ int64, sns []string,
) (orders []order.Order, _ error) {
	status := s.status
	s.started <- sns
	for _, sn := range sns {
		if sn != "missing" {
			orders = append(orders,
				order.Order{OrderLine: reservation.OrderLine{OrderSn: sn}, Status: status})
		}
	}
	return orders, nil
}

// TestFind_SharedLookupReturnsWritesBeforeTheCall checks that concurrent queries share one
// statement, and that a query never joins a statement that began before it. Its buyer may have seen
// a change meanwhile.
func TestFind_SharedLookupReturnsWritesBeforeTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &slowStore{status: order.Created, started: make(chan []string)}
		s := NewService(Deps{Store: store, Redis: store})
		ask := func(sn string, want order.Status, wantErr error) {
			go func() {
				r, err := s.lookups.Do(t.Context(), 1, sn)
				assert.NoError(t, err)
				assert.Equal(t, want, r.row.Status)
				assert.ErrorIs(t, r.err, wantErr)
			}()
			synctest.Wait()
		}
		ask("a", order.Created, nil)
		store.status = order.Paid
		ask("a", order.Paid, nil)
		ask("missing", "", order.ErrNoSuchOrder)
		ask("b", order.Paid, nil)
		require.Equal(t, []string{"a"}, <-store.started)
		require.Equal(t, []string{"a", "missing", "b"}, <-store.started)
	})
}
