package payment

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/apierror"
	"flashsale.dev/seckill/internal/order"
)

// heldStore is a Store that answers a batch of payments after the test has received its ids.
type heldStore struct {
	Store
	started chan []string
}

func (s *heldStore) Now(context.Context) (time.Time, error) { return time.Now(), nil }

func (s *heldStore) Receive(
	ctx context.Context, _ int64, payments []Payment, _ time.Time,
) ([]Receipt, error) {
	ids, receipts := make([]string, len(payments)), make([]Receipt, len(payments))
	for i, p := range payments {
		ids[i], receipts[i] = p.ID, Receipt{Payment: p, State: Kept}
		if p.ID == "bad" {
			receipts[i] = Receipt{Err: order.ErrNoSuchOrder}
		}
	}
	s.started <- ids
	return receipts, ctx.Err()
}

// TestService_ConcurrentPaymentsShareTransaction checks that payments of a goods wait for the
// transaction in flight and then share one. The payment of a caller that has left is recorded all
// the same. A refusal affects only its own caller.
func TestService_ConcurrentPaymentsShareTransaction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &heldStore{started: make(chan []string)}
		s := NewService(nil, store, nil, nil, slog.New(slog.DiscardHandler))
		type outcome struct {
			id  string
			err error
		}
		pay := func(ctx context.Context, id string) <-chan outcome {
			done := make(chan outcome, 1)
			go func() {
				r, err := s.receive(ctx, Payment{ID: id, GoodsID: 1})
				done <- outcome{r.ID, err}
			}()
			synctest.Wait()
			return done
		}
		leaving, leave := context.WithCancel(t.Context())
		first, b := pay(leaving, "first"), pay(t.Context(), "b")
		gone, bad, c := pay(leaving, "gone"), pay(t.Context(), "bad"), pay(t.Context(), "c")
		leave()
		require.Equal(t, []string{"first"}, <-store.started)
		require.Equal(t, []string{"b", "gone", "bad", "c"}, <-store.started)
		require.Equal(t, outcome{id: "first"}, <-first)
		require.Equal(t, outcome{id: "gone"}, <-gone)
		require.Equal(t, outcome{id: "b"}, <-b)
		require.Equal(t, outcome{id: "c"}, <-c)
		require.Equal(t, apierror.NotFound, apierror.ReasonOf((<-bad).err))
	})
}
