package inventory

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/apierror"
	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/rebuild"
	"flashsale.dev/seckill/internal/seckill"
)

// soldStore is a MySQL with one sale.
type soldStore struct {
	Store
	sale seckill.Sale
}

func (soldStore) Now(context.Context) (time.Time, error) { return time.Now(), nil }

func (s soldStore) Sale(context.Context, int64) (seckill.Sale, error) { return s.sale, nil }

// epochStore is a MySQL that returns an error to each epoch.
type epochStore struct {
	rebuild.Store
	err error
}

func (epochStore) Now(context.Context) (time.Time, error) { return time.Now(), nil }

func (s epochStore) BeginEpoch(
	context.Context, int64, int64, order.Times,
) (seckill.Sale, error) {
	return seckill.Sale{}, s.err
}

// downRedis is a Redis that does not answer.
type downRedis struct{ rebuild.Redis }

func (downRedis) LockRebuild(context.Context, int64, time.Duration) (func(), bool, error) {
	return nil, false, context.DeadlineExceeded
}

// TestExpose_ReportsWhatMayBeExposed checks that Exposed gets each sale that may be exposed now,
// also if another node exposes it or the outcome is unknown. A sale is over from its end on.
func TestExpose_ReportsWhatMayBeExposed(t *testing.T) {
	for name, c := range map[string]struct {
		status  seckill.Status
		left    time.Duration
		err     error
		refusal apierror.Reason
		exposed []int64
	}{
		"exposed before":    {seckill.Exposed, 1, nil, "", []int64{1}},
		"exposed meanwhile": {seckill.Draft, 1, rebuild.ErrFenced, "", []int64{1}},
		"MySQL fails":       {seckill.Draft, 1, context.Canceled, apierror.Unavailable, []int64{1}},
		"over":              {seckill.Draft, 0, nil, apierror.Conflict, nil},
		"closed":            {seckill.Closed, 1, nil, apierror.Conflict, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sale := seckill.Sale{Status: c.status, EndAt: time.Now().Add(c.left)}
				s := &SaleService{
					Stores: Stores{Store: soldStore{sale: sale}},
					Opener: rebuild.Opener{Store: epochStore{err: c.err}, Redis: downRedis{}},
				}
				var exposed []int64
				s.Exposed = func(goodsID int64) { exposed = append(exposed, goodsID) }
				_, err := s.Expose(t.Context(), seckill.Actor{Role: seckill.Operator}, 1)
				require.Equal(t, c.refusal, apierror.ReasonOf(err), "%v", err)
				require.Equal(t, c.exposed, exposed)
			})
		})
	}
}
