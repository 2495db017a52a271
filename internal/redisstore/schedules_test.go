package redisstore

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/reservation"
	"flashsale.dev/seckill/internal/testing/must"
	"flashsale.dev/seckill/internal/waitingroom/admission"
)

// schedule is a random order of the steps of some buyers and of the workers, on a clock that the
// test sets. Redis loses nothing, so each promise to a buyer is strict.
type schedule struct {
	fixture
	*rand.Rand
	server                      *miniredis.Miniredis
	now                         time.Time
	epoch, units, limit, joined int64
	places                      map[int64]*promised // of buyers
	log                         []string
}

type promised struct {
	number int64
	called time.Time // zero while the number waits
}

const scheduledTurn = 2 * time.Second // the life of an admission

// TestJoin_RandomSchedulesKeepEveryPlace checks that only its buyer ends a number that waits. Each
// admission lasts its whole time and finds a unit, and units do not wait for buyers.
func TestJoin_RandomSchedulesKeepEveryPlace(t *testing.T) {
	server := miniredis.RunT(t)
	f := open(t, server.Addr(), "a token")
	for seed := range uint64(20) {
		server.FlushAll()
		s := &schedule{
			fixture: f, Rand: rand.New(rand.NewPCG(seed, 0)), server: server, now: time.Now(),
			places: map[int64]*promised{},
		}
		s.units, s.limit = 1+s.Int64N(3), 1+s.Int64N(2)
		s.rebuild()
		for range 80 {
			s.step(1 + s.Int64N(3))
		}
	}
}

func (s *schedule) step(buyer int64) {
	switch s.IntN(10) {
	case 0, 1, 2, 3:
		s.ask([]admission.Mode{admission.Join, admission.Find}[s.IntN(2)], buyer)
	case 4:
		s.note("leave: %+v", s.visit(admission.Leave, buyer))
		delete(s.places, buyer)
	case 5:
		s.ask(admission.Find, buyer) // a turn that nobody has asked for is the number's
		s.buy(buyer)
	case 6:
		s.rebuild()
	case 7:
		s.pass([]time.Duration{scheduledTurn / 2, 4 * scheduledTurn}[s.IntN(2)])
	default:
		s.admit()
	}
}

func (s *schedule) note(format string, args ...any) {
	s.log = append(s.log, fmt.Sprintf("%d: "+format, append([]any{s.now.UnixMilli()}, args...)...))
}

func (s *schedule) pass(d time.Duration) {
	s.now = s.now.Add(d)
	s.server.SetTime(s.now)
}

// admitted reports whether a place surely is.
func (s *schedule) admitted(p *promised) bool {
	return p != nil && s.now.Sub(p.called) < scheduledTurn-time.Millisecond
}

func (s *schedule) ask(mode admission.Mode, buyer int64) {
	p, seat := s.places[buyer], s.visit(mode, buyer)[0]
	s.note("ask %d %d: %+v", mode, buyer, seat)
	switch {
	case p != nil && p.called.IsZero():
		require.Equal(s.t, admission.Seat{Number: p.number}, seat, s.log)
	case s.admitted(p) || !seat.Until.IsZero():
		require.True(s.t, p != nil && seat.Number == p.number && !seat.Until.IsZero(), s.log)
	case mode == admission.Join:
		s.joined++
		require.Equal(s.t, admission.Seat{Number: s.joined}, seat, s.log)
		s.places[buyer] = &promised{number: s.joined}
	default:
		require.True(s.t, (seat.Mark == admission.Unknown) == (p == nil), s.log)
	}
}

// buy buys a unit and cancels the order.
func (s *schedule) buy(buyer int64) {
	r, p, id := reservationOf(len(s.log), buyer, 1), s.places[buyer], fmt.Sprint(buyer)
	r.PathEnd = s.now.Add(time.Minute)
	got := must.Get(s.reserveIn(s.epoch, r))(s.t)
	if s.note("buy %d: %+v", buyer, got); got.Verdicts[0].Code != reservation.Taken {
		require.True(s.t, !s.admitted(p), s.log)
		return
	}
	require.True(s.t, p != nil && !p.called.IsZero(), s.log)
	delete(s.places, buyer)
	s.release(order.StockMove{
		ID: r.OrderSn, Epoch: s.epoch, Kind: order.MoveCancel, BuyerID: id, OrderSn: r.OrderSn,
	})
}

func (s *schedule) admit() {
	s.callNext(scheduledTurn)
	turns := s.client.ZRange(s.t.Context(), keysOf(goods).turns(), 0, -1).Val()
	open := int64(len(turns))
	s.note("admit: %v", turns)
	require.True(s.t, open == 0 || (open-1)*s.limit < s.units, s.log)
	for _, p := range s.places {
		if p.called.IsZero() && slices.Contains(turns, fmt.Sprint(p.number)) {
			p.called = s.now
		}
		require.True(s.t, !p.called.IsZero() || open*s.limit >= s.units, s.log)
	}
}

// rebuild builds the sale in its next epoch, while time passes.
func (s *schedule) rebuild() {
	before := must.Get(s.Room(s.t.Context(), goods))(s.t)
	s.epoch++
	sale := onSaleIn(s.epoch, s.units, s.limit)
	sale.EndAt, sale.Admission = s.now.Add(day), seckill.ByWaitingRoom
	sale.Rate.PermitsPerSecond = 1e6
	s.load(sale)
	s.pass(time.Duration(s.Int64N(9000)) * time.Millisecond)
	s.prepare(admission.Record{Joined: s.joined, Limit: 1000, Admitted: before.Admitted})
	s.note("rebuild")
}
