package query

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/apierror"
	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/ordersn"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/reservation"
)

// slowStore is Redis and MySQL with one status for all orders of a buyer. A statement returns the
// status at its beginning, after the test has received its numbers.
type slowStore struct {
	Store
	Redis
	order.SaleReader
	buyerID string
	status  order.Status
	missing string // a number without a row
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
	s.started <- slices.Clone(sns)
	for _, sn := range sns {
		if sn != s.missing {
			line := reservation.OrderLine{OrderSn: sn, BuyerID: s.buyerID}
			orders = append(orders, order.Order{OrderLine: line, Status: status})
		}
	}
	return orders, nil
}

func (s *slowStore) ExposedSale(context.Context, int64) (seckill.View, error) {
	return seckill.View{Gate: seckill.GateOpen}, nil
}

// TestFind_SharedLookupReturnsWritesBeforeTheCall checks that concurrent queries share one
// statement, and that a query never joins a statement that began before it. Its buyer may have seen
// a change meanwhile. A query whose caller has left takes no part in the statement.
func TestFind_SharedLookupReturnsWritesBeforeTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		keys, by := ordersn.NewKeys([]byte("a secret")), seckill.Actor{ID: "7", Role: seckill.Buyer}
		issue := func(buyerID string) string { return keys.Issue(1, buyerID, time.Now()).String() }
		a, b, unasked, foreign := issue(by.ID), issue(by.ID), issue(by.ID), issue("8")
		store := &slowStore{
			buyerID: by.ID, status: order.Created, missing: foreign, started: make(chan []string),
		}
		s := NewService(Deps{Store: store, Redis: store, Reader: store, Keys: keys})
		find := func(ctx context.Context, sn string, want order.Status, refusal apierror.Reason) {
			go func() {
				o, err := s.Find(ctx, by, sn)
				assert.Equal(t, refusal, apierror.ReasonOf(err))
				assert.Equal(t, want, o.Status)
			}()
			synctest.Wait()
		}
		find(t.Context(), a, order.Created, "")
		store.status = order.Paid
		find(t.Context(), a, order.Paid, "")
		find(t.Context(), foreign, "", apierror.NotFound)
		leaving, leave := context.WithCancel(t.Context())
		find(leaving, unasked, "", apierror.Unavailable)
		find(t.Context(), b, order.Paid, "")
		leave()
		synctest.Wait()
		require.Equal(t, []string{a}, <-store.started)
		require.Equal(t, []string{a, foreign, b}, <-store.started)
		synctest.Wait() // the callers have their answers before t.Context ends
	})
}
