package rebuild

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/message"
	"flashsale.dev/seckill/internal/seckill/reservation"
)

// refusingStore returns an error for each missing order, and keeps dead letters.
type refusingStore struct {
	Store
	err         error
	deadLetters []order.DeadLetter
}

func (*refusingStore) Now(context.Context) (time.Time, error) { return time.Now(), nil }

func (s *refusingStore) WriteMissing(
	context.Context, int64, reservation.OrderLine, order.DeadLetter, time.Time,
) error {
	return s.err
}

func (s *refusingStore) AddDeadLetter(_ context.Context, d order.DeadLetter) error {
	s.deadLetters = append(s.deadLetters, d)
	return nil
}

// TestDeadLetterMissing_OnlyOfRefusedOrders checks that a missing order becomes a dead letter only
// if MySQL refuses it. After a lost transaction, or during a newer rebuild, the gate stays shut.
func TestDeadLetterMissing_OnlyOfRefusedOrders(t *testing.T) {
	refused := errors.New("refused")
	for err, deadLetters := range map[error]int{refused: 1, order.ErrTryAgain: 0, ErrFenced: 0} {
		s := &refusingStore{err: err}
		r := &Rebuilder{Opener: Opener{Store: s}, Log: slog.New(slog.DiscardHandler)}
		missing := order.Pending{OrderLine: reservation.OrderLine{OrderSn: "a"}, At: time.Now()}
		missing.Entry = message.EncodeLine(missing.OrderLine)
		result := &Result{GoodsID: 1}
		got := r.deadLetterMissing(t.Context(), result, 1, []order.Pending{missing})
		require.Len(t, s.deadLetters, deadLetters, err)
		require.Equal(t, deadLetters, result.Lost)
		if deadLetters > 0 {
			require.NoError(t, got)
			require.Equal(t, order.DeadLetter{
				ID: order.DeadLetterID("a"), GoodsID: 1, OrderSn: "a", FirstSeenAt: missing.At,
				Reason: order.FailedUnwritten, Attempts: maxDrains, Origin: originRebuild,
				Body: message.EncodeOrder(1, missing.OrderLine),
			}, s.deadLetters[0])
		} else {
			require.ErrorIs(t, got, err)
		}
	}
}

// shutRedis records the epoch up to which it refuses loads.
type shutRedis struct {
	Redis
	epoch int64
}

func (r *shutRedis) Shut(_ context.Context, _, epoch int64) (string, error) {
	r.epoch = epoch
	return "", errDown
}

// TestDrain_ShutsTheNewerOfBothEpochs checks that the gate is shut also where MySQL has lost the
// last epoch in a failover, and where Redis has not loaded it. A retired sale is not touched.
func TestDrain_ShutsTheNewerOfBothEpochs(t *testing.T) {
	for _, c := range []struct {
		token         Token
		inRedis, shut int64
		want          error
	}{
		{Token{Epoch: 2}, 3, 3, errDown},
		{Token{Epoch: 3}, 2, 3, errDown},
		{Token{Epoch: 3, Retired: true}, 3, 0, ErrRetired},
	} {
		redis := &shutRedis{}
		r := &Rebuilder{Opener: Opener{Redis: redis}}
		_, err := r.drain(t.Context(), &Result{}, c.token, c.inRedis)
		require.ErrorIs(t, err, c.want)
		require.Equal(t, c.shut, redis.epoch)
	}
}

// backlogged is a queue, and a MySQL that never gets to its last message.
type backlogged struct{ Store }

func (backlogged) Publish(context.Context, int64, []byte) error { return nil }

func (backlogged) BarrierReached(context.Context, int64, int64, int64) (bool, error) {
	return false, nil
}

// TestPassBarrier_NamesTheBacklog checks the error of a rebuild that waits for orders before its
// barrier: an operator must know that the sale opens once they are written.
func TestPassBarrier_NamesTheBacklog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &Rebuilder{Opener: Opener{Store: backlogged{}}, Queue: backlogged{}}
		err := r.passBarrier(t.Context(), 1, message.Barrier{})
		require.ErrorContains(t, err, "have not written the orders before it")
	})
}
