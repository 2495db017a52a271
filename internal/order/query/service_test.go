package query

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/apierror"
	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/ordersn"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/reservation"
)

// found is what Redis and MySQL answer about one order.
type found struct {
	pending, written string // the order's buyer in Redis and in MySQL; "": they lack it
	lost             string // the buyer of the row of a lost order in MySQL
	redis, mysql     error
}

// changing are servers whose answers change with each reading. The last answer stays.
type changing struct {
	Store
	Redis
	order.SaleReader
	found     []found
	views     []seckill.View
	tombstone string // the buyer of the row that MySQL has by then
	mysql     error  // of the tombstone
}

// next removes and returns the first answer, unless it is the last one.
func next[T any](answers *[]T) T {
	a := (*answers)[0]
	if len(*answers) > 1 {
		*answers = (*answers)[1:]
	}
	return a
}

func (c *changing) PendingAmong(
	_ context.Context, numbers map[int64][]string,
) (map[string]reservation.OrderLine, error) {
	f, lines := c.found[0], map[string]reservation.OrderLine{}
	if sn := numbers[1][0]; f.pending != "" {
		lines[sn] = reservation.OrderLine{OrderSn: sn, BuyerID: f.pending}
	}
	return lines, f.redis
}

func (c *changing) OrdersByNumber(
	_ context.Context, _ int64, sns []string,
) (orders []order.Order, _ error) {
	f := next(&c.found)
	if f.lost != "" {
		line := reservation.OrderLine{OrderSn: sns[0], BuyerID: f.lost}
		orders = append(orders, order.Order{
			OrderLine: line, Status: order.Failed, FailureReason: order.FailedLost,
		})
	}
	if f.written != "" {
		line := reservation.OrderLine{OrderSn: sns[0], BuyerID: f.written}
		orders = append(orders, order.Order{OrderLine: line, Status: order.Paid})
	}
	return orders, f.mysql
}

func (c *changing) ExposedSale(context.Context, int64) (seckill.View, error) {
	return next(&c.views), nil
}

func (*changing) Now(context.Context) (time.Time, error) { return time.Now(), nil }

func (c *changing) WriteTombstone(_ context.Context, o order.Order) (order.Order, error) {
	if c.tombstone != "" {
		o.BuyerID, o.FailureReason, o.Status, o.Quantity = c.tombstone, "", order.Paid, 1
	}
	return o, c.mysql
}

// TestFind_AnswersWhatTheServersHave checks to whom an order is shown. It is failed only if both
// servers lack it before and after a reading of its sale, and no other epoch begins. Otherwise the
// buyer asks again.
func TestFind_AnswersWhatTheServersHave(t *testing.T) {
	const deadline = time.Minute
	keys, issued := ordersn.NewKeys([]byte("a secret")), time.Now().Add(-time.Hour)
	n := keys.Issue(1, "7", issued)
	lost := n.ExpiresAt().Add(deadline + clockStep) // from then on
	view := func(epoch int64, gate seckill.GateState, retired bool, now time.Time) seckill.View {
		return seckill.View{
			Sale: seckill.Sale{Epoch: epoch, Retired: retired}, Gate: gate, Now: now,
		}
	}
	open := []seckill.View{view(1, seckill.GateOpen, false, lost)}
	nothing := found{}
	for name, c := range map[string]struct {
		servers changing
		status  order.Status
		refusal apierror.Reason
	}{
		"another buyer's reservation": {
			changing{found: []found{{pending: "8"}}, views: open}, "", apierror.Forbidden,
		},
		"another buyer's row": {
			changing{found: []found{{written: "8"}}, views: open}, "", apierror.Forbidden,
		},
		"another buyer's lost order": {
			changing{found: []found{{lost: "8"}}, views: open}, "", apierror.Forbidden,
		},
		"one's own lost order": {
			changing{found: []found{{lost: "7"}}, views: open}, order.Failed, "",
		},
		"another buyer's row, written meanwhile": {
			changing{found: []found{nothing}, views: open, tombstone: "8"}, "", apierror.Forbidden,
		},
		"MySQL fails": {
			changing{found: []found{{mysql: context.Canceled}, nothing}, views: open},
			"", apierror.Unavailable,
		},
		"Redis fails": {
			changing{found: []found{{redis: context.Canceled}, nothing}, views: open},
			"", apierror.Unavailable,
		},
		"Redis fails the second time": {
			changing{found: []found{nothing, {redis: context.Canceled}}, views: open},
			"", apierror.Unavailable,
		},
		"MySQL fails at the tombstone": {
			changing{found: []found{nothing}, views: open, mysql: context.Canceled},
			"", apierror.Unavailable,
		},
		"reserved meanwhile": {
			changing{found: []found{nothing, {pending: "7"}}, views: open}, order.Queued, "",
		},
		"may be reserved": {
			changing{
				found: []found{nothing},
				views: []seckill.View{view(1, seckill.GateOpen, false, lost.Add(-1))},
			},
			order.Queued, "",
		},
		"written meanwhile": {
			changing{found: []found{nothing}, views: open, tombstone: "7"}, order.Paid, "",
		},
		"lost": {changing{found: []found{nothing}, views: open}, order.Failed, ""},
		"of a retired sale": {
			changing{
				found: []found{nothing},
				views: []seckill.View{view(1, seckill.GateMissing, true, lost)},
			},
			order.Failed, "",
		},
		"of a lost sale": {
			changing{
				found: []found{nothing},
				views: []seckill.View{view(1, seckill.GateMissing, false, lost)},
			},
			"", apierror.Unavailable,
		},
		"of a shut sale": {
			changing{
				found: []found{nothing},
				views: []seckill.View{view(1, seckill.GateShut, true, lost)},
			},
			"", apierror.Unavailable,
		},
		"rebuilt meanwhile": {
			changing{
				found: []found{nothing},
				views: append(open[:1:1], view(2, seckill.GateOpen, false, lost)),
			},
			"", apierror.Unavailable,
		},
		"shut meanwhile": {
			changing{
				found: []found{nothing},
				views: append(open[:1:1], view(1, seckill.GateShut, false, lost)),
			},
			"", apierror.Unavailable,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := NewService(Deps{
				Store: &c.servers, Redis: &c.servers, Reader: &c.servers, Keys: keys,
				PublishDeadline: deadline,
			})
			o, err := s.Find(t.Context(), seckill.Actor{ID: "7", Role: seckill.Buyer}, n.String())
			require.Equal(t, c.refusal, apierror.ReasonOf(err), "%v", err)
			require.Equal(t, c.status, o.Status)
		})
	}
}

// silent has a MySQL that takes calls and never answers, as one whose disk hangs.
type silent struct{ *changing }

func (silent) OrdersByNumber(ctx context.Context, _ int64, _ []string) ([]order.Order, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestFind_PendingOrderIsQueuedWhileMySQLIsSilent checks that a lookup ends before the five seconds
// of a call of the API. The answer is then what Redis has.
func TestFind_PendingOrderIsQueuedWhileMySQLIsSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		servers := silent{&changing{
			found: []found{{pending: "7"}}, views: []seckill.View{{Gate: seckill.GateOpen}},
		}}
		keys := ordersn.NewKeys([]byte("a secret"))
		s := NewService(Deps{Store: servers, Redis: servers, Reader: servers, Keys: keys})
		call, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		time.Sleep(time.Millisecond) // the call is authenticated first
		o, err := s.Find(call, seckill.Actor{ID: "7", Role: seckill.Buyer},
			keys.Issue(1, "7", time.Now()).String())
		require.NoError(t, err)
		require.Equal(t, order.Queued, o.Status)
	})
}
