package redisstore

import (
	"crypto/sha1" //nolint:gosec // as the script
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/reservation"
	"flashsale.dev/seckill/internal/testing/must"
	"flashsale.dev/seckill/internal/testing/roommodel"
	"flashsale.dev/seckill/internal/waitingroom"
	"flashsale.dev/seckill/internal/waitingroom/admission"
)

// aTurn is long enough for every test, and shortTurn is over at once.
const (
	aTurn     = time.Hour
	shortTurn = time.Millisecond
)

// openRoom loads a sale with a waiting room that has handed out no number. Its rate calls everybody
// at once.
func (s fixture) openRoom(units, limit int64) {
	s.t.Helper()
	rate := seckill.DefaultRate()
	rate.PermitsPerSecond = 1e6
	s.openRoomAt(rate, units, limit)
}

func (s fixture) openRoomAt(rate seckill.Rate, units, limit int64) {
	s.t.Helper()
	sale := onSale(units, limit)
	sale.Admission, sale.Rate = seckill.ByWaitingRoom, rate
	s.load(sale)
	require.True(s.t, s.prepare(admission.Record{Limit: 1000, DrawSize: 0}).Ready())
}

// prepare makes the room ready as a worker does.
func (s fixture) prepare(r admission.Record) admission.State {
	s.t.Helper()
	r.Lease, r.Seed = must.Get(s.Room(s.t.Context(), goods))(s.t).SaleLease, "the seed"
	return must.Get(s.Prepare(s.t.Context(), goods, r, "its hash"))(s.t)
}

// visit is one call for buyers without tickets.
func (s fixture) visit(mode admission.Mode, buyers ...int64) []admission.Seat {
	s.t.Helper()
	visits := make([]admission.Visit, len(buyers))
	for i, b := range buyers {
		visits[i] = admission.Visit{BuyerID: fmt.Sprint(b)}
	}
	_, seats, err := s.Join(s.t.Context(), goods, mode, visits)
	require.NoError(s.t, err)
	return seats
}

// restore shows the ticket of a buyer.
func (s fixture) restore(buyer, number int64) admission.Seat {
	s.t.Helper()
	_, seats, err := s.Join(s.t.Context(), goods, admission.Join,
		[]admission.Visit{{BuyerID: fmt.Sprint(buyer), Ticket: number, Position: number}})
	require.NoError(s.t, err)
	return seats[0]
}

// callNext calls numbers, which are their own positions.
func (s fixture) callNext(life time.Duration) admission.State {
	s.t.Helper()
	at := must.Get(s.Room(s.t.Context(), goods))(s.t).Admitted
	numbers := make([]int64, 100)
	for i := range numbers {
		numbers[i] = at + 1 + int64(i)
	}
	return must.Get(s.Admit(s.t.Context(), goods,
		admission.Call{Admitted: at, Numbers: numbers, Life: life}))(s.t)
}

func numbersOf(seats []admission.Seat) (list []int64) {
	for _, s := range seats {
		list = append(list, s.Number)
	}
	return list
}

func buyersUpTo(n int64) (list []int64) {
	for b := int64(1); b <= n; b++ {
		list = append(list, b)
	}
	return list
}

// TestJoin_OnePlaceForEachBuyer checks that the same buyer gets the same number, also twice in one
// call, and that leaving ends it.
func (s fixture) TestJoin_OnePlaceForEachBuyer(t *testing.T) {
	s.openRoom(1, 1)
	unknown := []admission.Seat{{Mark: admission.Unknown}}
	require.Equal(t, unknown, s.visit(admission.Find, 7))
	require.Equal(t, unknown, s.visit(admission.Leave, 7))
	require.Equal(t, []int64{1, 2, 1}, numbersOf(s.visit(admission.Join, 7, 8, 7)))
	require.Equal(t, []int64{2, 1}, numbersOf(s.visit(admission.Find, 8, 7)))
	require.Equal(t, []admission.Seat{{Number: 1, Mark: admission.Passed}},
		s.visit(admission.Leave, 7))
	require.Equal(t, unknown, s.visit(admission.Find, 7))
	require.Equal(t, []int64{3}, numbersOf(s.visit(admission.Join, 7)), "again at the end")
	require.EqualValues(t, 0, s.restore(7, 3).Mark)
	require.EqualValues(t, 3, s.restore(7, 1).Number, "the ticket of a number that was left")
	require.Equal(t, []int64{2}, numbersOf(s.visit(admission.Find, 8)))
}

// TestJoin_LeaverKeepsTheNumberUntilTheDraw checks that a buyer who leaves before the draw has no
// place, and joins again with the same number. So a buyer collects no numbers, and no tickets that
// are valid after a loss of Redis. After the start a leaver joins again at the end.
func (s fixture) TestJoin_LeaverKeepsTheNumberUntilTheDraw(t *testing.T) {
	sale := onSale(1, 1)
	sale.Admission, sale.StartAt = seckill.ByWaitingRoom, time.Now().Add(time.Hour)
	s.load(sale)
	s.prepare(admission.Record{Limit: 1000, DrawSize: admission.NotDrawn})
	long := "018f4e6a-0000-7000-8000-000000000001"
	_, seats, err := s.Join(t.Context(), goods, admission.Join, []admission.Visit{{BuyerID: long}})
	require.NoError(t, err)
	require.Equal(t, []int64{1}, numbersOf(seats))
	require.Equal(t, []int64{2, 3, 4}, numbersOf(s.visit(admission.Join, 7, 8, 9)))
	before := must.Get(s.Room(t.Context(), goods))(t)
	left := before.Left
	for range 3 {
		require.Equal(t, admission.Passed, s.visit(admission.Leave, 7)[0].Mark)
		require.Equal(t, admission.Unknown, s.visit(admission.Leave, 7)[0].Mark)
		require.Equal(t, admission.Unknown, s.visit(admission.Find, 7)[0].Mark)
		require.NotZero(t, must.Get(s.Ended(t.Context(), goods))(t)[0]&(1<<5), "number 2")
		require.Equal(t, []int64{2, 3}, numbersOf(s.visit(admission.Join, 7, 8)))
		require.Equal(t, admission.Seat{Number: 2}, s.visit(admission.Find, 7)[0])
		require.Zero(t, must.Get(s.Ended(t.Context(), goods))(t)[0])
		after := must.Get(s.Room(t.Context(), goods))(t)
		require.Greater(t, after.Left, left+1, "nodes read the bitmap again after either")
		left = after.Left
		require.Equal(t, []any{before.Joined, before.Digest}, []any{after.Joined, after.Digest})
	}
	for _, mode := range []admission.Mode{admission.Leave, admission.Join, admission.Leave} {
		_, seats, err = s.Join(t.Context(), goods, mode, []admission.Visit{{BuyerID: long}})
		require.NoError(t, err)
		require.Equal(t, []int64{1}, numbersOf(seats))
	}
	s.visit(admission.Leave, 9)
	require.Equal(t, admission.Seat{Number: 4}, s.restore(9, 4), "the ticket of the number")
	s.visit(admission.Leave, 9)

	started := time.Now().Add(-time.Second).UnixMilli()
	require.NoError(t, s.client.HSet(t.Context(), keysOf(goods).sale(), "start", started).Err())
	require.Equal(t, admission.Unknown, s.visit(admission.Find, 9)[0].Mark, "left, and not missed")
	require.Equal(t, []int64{5, 2}, numbersOf(s.visit(admission.Join, 9, 7)), "again at the end")
	require.EqualValues(t, 4, must.Get(s.Room(t.Context(), goods))(t).DrawSize)
	require.NotZero(t, must.Get(s.Ended(t.Context(), goods))(t)[0]&(1<<3), "number 4")
	s.visit(admission.Leave, 7)
	require.Equal(t, []int64{6}, numbersOf(s.visit(admission.Join, 7)))
}

// TestJoin_EachBuyerGetsTheirOwnNumber checks groups of new buyers, of buyers with a number, and of
// both, with and without tickets, whose ids are short, long or both. The arguments and the answer
// of the script have another form for each.
func (s fixture) TestJoin_EachBuyerGetsTheirOwnNumber(t *testing.T) {
	s.openRoom(1, 1)
	short := func(i int) string { return fmt.Sprint(i) }
	long := func(i int) string { return fmt.Sprintf("018f4e6a-0000-7000-8000-%012d", i) }
	mixed := func(i int) string { return []func(int) string{short, long}[i%2](i + 5000) }
	last := int64(0)
	for _, id := range []func(int) string{short, long, mixed} {
		numbers := map[string]int64{}
		for round := range 3 { // of new buyers, then with those of the rounds before
			var visits []admission.Visit
			for i := range 20 * (round + 1) {
				v := admission.Visit{BuyerID: id(i)}
				if round == 2 && i%3 == 0 {
					v.Ticket = numbers[v.BuyerID]
				}
				visits = append(visits, v)
			}
			rand.Shuffle(len(visits), func(i, j int) {
				visits[i], visits[j] = visits[j], visits[i]
			})
			state, seats, err := s.Join(t.Context(), goods, admission.Join, visits)
			require.NoError(t, err)
			for i, v := range visits {
				if numbers[v.BuyerID] == 0 {
					last++
					numbers[v.BuyerID] = last
				}
				require.Equal(t, admission.Seat{Number: numbers[v.BuyerID]}, seats[i], "%+v", v)
			}
			require.Equal(t, last, state.Joined)
		}
	}
}

// TestJoin_HandsOutGrantedNumbersOnly checks that Redis alone makes no number.
func (s fixture) TestJoin_HandsOutGrantedNumbersOnly(t *testing.T) {
	sale := onSale(1, 1)
	s.load(sale)
	_, seats, err := s.Join(t.Context(), goods, admission.Join, []admission.Visit{{BuyerID: "1"}})
	require.NoError(t, err)
	require.Empty(t, seats, "no room is ready")
	state := s.prepare(admission.Record{Limit: 1, DrawSize: 0})
	exhausted := admission.Seat{Mark: admission.Exhausted}
	require.Equal(t, []admission.Seat{{Number: 1}, exhausted}, s.visit(admission.Join, 1, 2))
	require.NoError(t, s.RaiseLimit(t.Context(), goods, "another lease", 100))
	require.Equal(t, []admission.Seat{exhausted}, s.visit(admission.Join, 2))
	require.NoError(t, s.RaiseLimit(t.Context(), goods, state.Lease, 100))
	require.Equal(t, []int64{2}, numbersOf(s.visit(admission.Join, 2)))

	s.again(1, 1)
	require.Empty(t, s.visit(admission.Join, 3), "the room is of an earlier epoch")
	require.EqualValues(t, 2, must.Get(s.Room(t.Context(), goods))(t).Joined)
}

// TestJoin_DigestIsOfThoseBeforeTheDraw computes the digest that package waitingroom documents.
func (s fixture) TestJoin_DigestIsOfThoseBeforeTheDraw(t *testing.T) {
	sale := onSale(1, 1)
	sale.StartAt = time.Now().Add(time.Hour)
	s.load(sale)
	s.prepare(admission.Record{Limit: 1000, DrawSize: admission.NotDrawn})
	digest := ""
	for _, group := range []struct {
		buyers []int64
		line   string
	}{{[]int64{7}, "7:1"}, {[]int64{8, 7, 9}, "8:2 9:3"}} {
		s.visit(admission.Join, group.buyers...)
		digest = fmt.Sprintf("%x", sha1.Sum([]byte(digest+group.line)))
		require.Equal(t, digest, must.Get(s.Room(t.Context(), goods))(t).Digest)
	}
	started := time.Now().Add(-time.Second).UnixMilli()
	require.NoError(t, s.client.HSet(t.Context(), keysOf(goods).sale(), "start", started).Err())
	require.Equal(t, []int64{4}, numbersOf(s.visit(admission.Join, 10)))
	require.Equal(t, digest, must.Get(s.Room(t.Context(), goods))(t).Digest)
}

// TestJoin_LoadedOrdersReachTheLimit checks a buyer whose orders a load has brought from MySQL.
func (s fixture) TestJoin_LoadedOrdersReachTheLimit(t *testing.T) {
	s.load(onSale(3, 1), order.Held{BuyerID: "7", OrderSn: "sn1", Quantity: 1})
	s.prepare(admission.Record{Limit: 1000, DrawSize: 0})
	require.Equal(t, []admission.Seat{
		{Mark: admission.OverLimit, OrderSns: []string{"sn1"}}, {Number: 1},
	}, s.visit(admission.Join, 7, 8))
}

// TestJoin_TicketOfALostNumber checks tickets of a room that was lost. Redis may not have handed
// out the numbers of the gap, and the line has passed the first five positions.
func (s fixture) TestJoin_TicketOfALostNumber(t *testing.T) {
	s.openRoom(1, 1)
	s.prepareAgain(admission.Record{
		Joined: 9, Limit: 1000, DrawSize: 0, Admitted: 5, Gaps: []admission.Gap{{From: 4, To: 9}},
	})
	for _, c := range []struct {
		name             string
		ticket, position int64
		mark             admission.Mark
		inGap            int64 // afterwards
	}{
		{"not in the gap: its turn was missed", 3, 3, admission.InLine, 0},
		{"a node that has not seen the draw asks again", 4, 0, admission.InLine, 1},
		{"passed", 4, 5, admission.Late, 0},
		{"not passed", 5, 6, admission.InLine, 0},
	} {
		_, seats, err := s.Join(t.Context(), goods, admission.Find, []admission.Visit{
			{BuyerID: fmt.Sprint("of", c.ticket), Ticket: c.ticket, Position: c.position},
		})
		require.NoError(t, err, c.name)
		require.Equal(t, []admission.Seat{{Number: c.ticket, Mark: c.mark}}, seats, c.name)
		inGap := s.client.GetBit(t.Context(), keysOf(goods).gap(), c.ticket).Val()
		require.Equal(t, c.inGap, inGap, c.name)
	}
}

// TestAdmit_PromisesEachUnitOnce checks the rule of the stock: the units of all admissions that are
// not used are there, the last units are offered one by one, and only the admitted reserve.
func (s fixture) TestAdmit_PromisesEachUnitOnce(t *testing.T) {
	s.openRoom(5, 2)
	s.visit(admission.Join, buyersUpTo(6)...)
	require.Equal(t, reservation.NotAdmitted, s.reserve(reservationOf(1, 1, 1))[0].Code)
	state := s.callNext(aTurn)
	require.EqualValues(t, []int64{3, 3}, []int64{state.Admitted, state.Called},
		"two of them may take 4 units, and one is left for the third")
	seats := s.visit(admission.Find, 1, 2, 3, 4)
	require.NotZero(t, seats[2].Until)
	require.Zero(t, seats[3].Until)
	require.Equal(t, reservation.NotAdmitted, s.reserve(reservationOf(1, 4, 1))[0].Code)
	verdicts := s.reserve(reservationOf(2, 1, 2), reservationOf(3, 1, 1), reservationOf(2, 1, 2))
	require.Equal(t, []reservation.VerdictCode{
		reservation.Taken, reservation.NotAdmitted, reservation.Repeated,
	}, []reservation.VerdictCode{verdicts[0].Code, verdicts[1].Code, verdicts[2].Code})
	require.EqualValues(t, 2, s.callNext(aTurn).Called, "3 units, and two who may take 4")
	require.Equal(t, reservation.Taken, s.reserve(reservationOf(4, 2, 2))[0].Code)
	state = s.callNext(aTurn)
	require.EqualValues(t, []int64{3, 1}, []int64{state.Admitted, state.Called}, "the last unit")
	require.Equal(t, reservation.Taken, s.reserve(reservationOf(5, 3, 1))[0].Code)
	require.EqualValues(t, 3, s.callNext(aTurn).Admitted, "nothing is left")
	seats = s.visit(admission.Join, 5, 1, 6)
	require.Equal(t, admission.Seat{Mark: admission.OverLimit, OrderSns: []string{"sn2"}}, seats[1])
	require.Equal(t, []int64{5, 6}, []int64{seats[0].Number, seats[2].Number})
}

// TestRelease_CutLeavesPromisedUnits checks that a merchant takes off sale only what no admitted
// buyer was promised.
func (s fixture) TestRelease_CutLeavesPromisedUnits(t *testing.T) {
	s.openRoom(6, 2)
	s.visit(admission.Join, 1, 2, 3)
	require.EqualValues(t, 3, s.callNext(aTurn).Called)
	cut := func(id string, units int64) order.MoveResult {
		return s.release(order.StockMove{
			ID: id, GoodsID: goods, Epoch: 1, Kind: order.MoveDelta, Quantity: -units,
		})[0]
	}
	require.Equal(t, order.CutTooLarge, cut("a", 2), "the third might find nothing")
	require.Equal(t, order.MoveApplied, cut("b", 1))
	s.visit(admission.Leave, 1)
	s.visit(admission.Leave, 2)
	require.Equal(t, order.MoveApplied, cut("c", 4))
	require.Equal(t, order.CutTooLarge, cut("d", 1))
	s.visit(admission.Leave, 3)
	require.Equal(t, order.MoveApplied, cut("e", 1))
}

// TestRetake_LeavesPromisedUnits checks that an operator who requeues an order takes no unit that
// an admitted buyer was promised. An order of an older epoch takes its unit.
func (s fixture) TestRetake_LeavesPromisedUnits(t *testing.T) {
	s.openRoom(2, 1)
	s.visit(admission.Join, 1)
	require.EqualValues(t, 1, s.callNext(aTurn).Called)
	line := func(buyer string) reservation.OrderLine {
		return reservation.OrderLine{OrderSn: "of" + buyer, BuyerID: buyer, Quantity: 1}
	}
	retake := func(buyer string) int64 {
		return must.Get(s.Retake(t.Context(), goods, 1, 1, line(buyer)))(t)
	}
	require.EqualValues(t, 1, retake("7"))
	require.Zero(t, retake("8"))
	late := []reservation.OrderLine{line("9")}
	require.EqualValues(t, 1, must.Get(s.Adopt(t.Context(), goods, 1, 1, late))(t)["of9"])
}

// TestAdmit_LapsedTurnGoesToTheNext checks that an admission ends, that the next in line gets the
// unit, and that whoever missed a turn joins again at the end.
func (s fixture) TestAdmit_LapsedTurnGoesToTheNext(t *testing.T) {
	s.openRoom(1, 1)
	s.visit(admission.Join, 1, 2, 3)
	s.callNext(shortTurn)
	require.Eventually(t, func() bool {
		return s.callNext(aTurn).Missed == 1
	}, time.Minute, time.Millisecond)
	require.Equal(t, reservation.NotAdmitted, s.reserve(reservationOf(1, 1, 1))[0].Code)
	require.Equal(t, admission.Passed, s.visit(admission.Find, 1)[0].Mark)
	require.NotZero(t, s.visit(admission.Find, 2)[0].Until)
	require.Equal(t, []int64{4}, numbersOf(s.visit(admission.Join, 1)))
	require.Equal(t, admission.Passed, s.visit(admission.Leave, 2)[0].Mark)
	require.EqualValues(t, 3, s.callNext(aTurn).Admitted, "a turn that was left goes on too")
	require.NotZero(t, s.visit(admission.Find, 3)[0].Until)
}

// TestReserve_AdmissionEndsOnTime checks that an admission that has ended takes no unit, also
// before a worker calls the next in line.
func (s fixture) TestReserve_AdmissionEndsOnTime(t *testing.T) {
	s.openRoom(1, 1)
	s.visit(admission.Join, 1)
	require.EqualValues(t, 1, s.callNext(shortTurn).Called)
	require.Eventually(t, func() bool {
		return s.visit(admission.Find, 1)[0].Until.IsZero()
	}, time.Minute, time.Millisecond)
	require.Equal(t, reservation.NotAdmitted, s.reserve(reservationOf(1, 1, 1))[0].Code)
}

// TestJoin_AgainBeforeTheNextCallKeepsThePlace checks a buyer whose turn has ended and who joins
// again before a worker has removed that turn. It must not end the new place.
func (s fixture) TestJoin_AgainBeforeTheNextCallKeepsThePlace(t *testing.T) {
	s.openRoom(1, 1)
	s.visit(admission.Join, 1)
	s.callNext(shortTurn)
	require.Eventually(t, func() bool {
		return s.visit(admission.Find, 1)[0].Until.IsZero()
	}, time.Minute, time.Millisecond)
	again := admission.Seat{Number: 2}
	require.Equal(t, again, s.visit(admission.Join, 1)[0])
	require.Equal(t, again, s.visit(admission.Find, 1)[0])
	require.Equal(t, again, s.visit(admission.Join, 1)[0])
	require.EqualValues(t, 2, s.callNext(aTurn).Admitted)
	require.NotZero(t, s.visit(admission.Find, 1)[0].Until)
}

// TestJoin_AgainKeepsThePlaceAfterAPause checks a buyer whose turn has ended during a pause of all
// admitters, and who joins again before the pause ends. The ended turn, whose end admit then moves,
// must not end the new place.
func (s fixture) TestJoin_AgainKeepsThePlaceAfterAPause(t *testing.T) {
	s.openRoom(1, 1)
	s.visit(admission.Join, 1, 2)
	s.callNext(aTurn)
	s.visit(admission.Find, 1)
	s.setClock(-aTurn - time.Minute) // as if so much time has passed
	again := admission.Seat{Number: 3}
	require.Equal(t, again, s.visit(admission.Join, 1)[0])
	require.EqualValues(t, 1, s.callNext(aTurn).Missed)
	require.Equal(t, again, s.visit(admission.Find, 1)[0])
	require.NotZero(t, s.visit(admission.Find, 2)[0].Until)
}

// TestJoin_TicketOfAPassedNumberKeepsTheLaterPlace loses Redis after a buyer has missed a turn and
// joined again. The buyer has both tickets, on two devices.
func (s fixture) TestJoin_TicketOfAPassedNumberKeepsTheLaterPlace(t *testing.T) {
	s.openRoom(1, 1)
	s.prepareAgain(admission.Record{
		Joined: 6, Limit: 1000, DrawSize: 0, Admitted: 5, Turns: []admission.Turn{"b1 0"}, Calls: 1,
	})
	require.Equal(t, admission.Seat{Number: 6}, s.restore(1, 6))
	for _, position := range []int64{0, 3} { // a node that has not seen the draw has none
		for _, mode := range []admission.Mode{admission.Find, admission.Join} {
			_, seats, err := s.Join(t.Context(), goods, mode,
				[]admission.Visit{{BuyerID: "1", Ticket: 3, Position: position}})
			require.NoError(t, err)
			require.Equal(t, []admission.Seat{{Number: 6}}, seats)
		}
	}
	require.EqualValues(t, 6, s.callNext(aTurn).Admitted)
	require.NotZero(t, s.restore(1, 3).Until)
}

// TestJoin_UsedAdmissionIsNotMissed checks buyers who could buy another unit: one who has bought,
// one whose order was cancelled afterwards, and the latter after another admission that was not
// used.
func (s fixture) TestJoin_UsedAdmissionIsNotMissed(t *testing.T) {
	s.openRoom(10, 2)
	s.visit(admission.Join, 1, 2)
	s.callNext(aTurn)
	s.visit(admission.Find, 1, 2)
	bought := reservationOf(1, 1, 1)
	require.Equal(t, reservation.Taken, s.reserve(bought)[0].Code)
	require.Equal(t, admission.Unknown, s.visit(admission.Find, 1)[0].Mark)
	require.Equal(t, []order.MoveResult{order.MoveApplied}, s.release(order.StockMove{
		ID: "a", Epoch: 1, Kind: order.MoveCancel, BuyerID: "1",
		OrderSn: bought.OrderSn, Quantity: 1,
	}))
	require.Equal(t, admission.Unknown, s.visit(admission.Find, 1)[0].Mark)
	require.Equal(t, []int64{3}, numbersOf(s.visit(admission.Join, 1)), "again at the end")
	s.callNext(shortTurn)
	s.visit(admission.Find, 1)
	require.Eventually(t, func() bool { return s.callNext(aTurn).Missed == 1 }, time.Minute,
		time.Millisecond)
	require.Equal(t, admission.Passed, s.visit(admission.Find, 1)[0].Mark)
}

// TestAdmit_ConcurrentAdmittersCallNobodyTwice checks that a call which expects an older watermark
// moves no line.
func (s fixture) TestAdmit_ConcurrentAdmittersCallNobodyTwice(t *testing.T) {
	s.openRoom(50, 1)
	s.visit(admission.Join, buyersUpTo(9)...)
	call := admission.Call{Numbers: []int64{1, 2, 3}, Life: aTurn}
	for range 2 {
		state := must.Get(s.Admit(t.Context(), goods, call))(t)
		require.EqualValues(t, []int64{3, 3}, []int64{state.Admitted, state.Called})
	}
}

// TestAdmit_AgreesWithAdvance holds the script's rule against the model, for random rooms.
func (s fixture) TestAdmit_AgreesWithAdvance(t *testing.T) {
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 0))
		require.NoError(t, s.client.Del(t.Context(), keysOf(goods).sale()).Err())
		for _, key := range keysOf(goods).ofRoom() {
			require.NoError(t, s.client.Del(t.Context(), key).Err())
		}
		units, limit, joined := random.Int64N(12), 1+random.Int64N(3), random.Int64N(12)
		rate := seckill.Rate{
			PermitsPerSecond: 1 + float64(random.IntN(10)),
			MaxBurstSeconds:  float64(random.IntN(4)),
		}
		s.openRoomAt(rate, units, limit)
		first := int64(1000 * (seed + 1)) // of the buyers
		for b := range joined {
			s.visit(admission.Join, first+b)
		}
		before := must.Get(s.Room(t.Context(), goods))(t)
		after := must.Get(s.Admit(t.Context(), goods, admission.Call{
			Numbers: []int64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, Life: aTurn,
		}))(t)
		want := roommodel.Room{
			Room: waitingroom.Room{
				PermitsPerSecond: rate.PermitsPerSecond,
				Burst:            time.Duration(rate.MaxBurstSeconds) * time.Second,
			},
			StartAt: before.Now.Add(-time.Hour), EndAt: before.Now.Add(time.Hour),
			PerBuyerLimit: limit, Joined: before.Joined, Available: units,
		}.Advance(before.Now)
		require.Equal(t, want, after.Admitted, "%d units of %d, %+v", units, limit, before)
	}
}

// TestAdmit_CallsNobodyFasterThanTheRate checks the rate, whose permits do not accumulate beyond
// the burst.
func (s fixture) TestAdmit_CallsNobodyFasterThanTheRate(t *testing.T) {
	s.openRoomAt(seckill.Rate{PermitsPerSecond: 0.01, MaxBurstSeconds: 300}, 500, 1)
	s.visit(admission.Join, buyersUpTo(100)...)
	numbers := make([]int64, 100)
	for i := range numbers {
		numbers[i] = 1 + int64(i)
	}
	state := must.Get(s.Admit(t.Context(), goods,
		admission.Call{Numbers: numbers, Life: aTurn}))(t)
	require.EqualValues(t, 3, state.Admitted)
}

// TestAdmit_WaitsForTheDraw checks that nobody is called before the seed is public, and that the
// numbers of the draw are fixed when the sale has started.
func (s fixture) TestAdmit_WaitsForTheDraw(t *testing.T) {
	sale := onSale(9, 1)
	s.load(sale)
	s.prepare(admission.Record{Limit: 100, DrawSize: admission.NotDrawn})
	state := must.Get(s.Room(t.Context(), goods))(t)
	require.EqualValues(t, 0, state.DrawSize, "the sale has started and nobody had joined")
	s.visit(admission.Join, 1, 2)
	require.Zero(t, s.callNext(aTurn).Admitted)
	require.NoError(t, s.SetSeed(t.Context(), goods, state.Lease, "seed"))
	state = s.callNext(aTurn)
	require.EqualValues(t, []int64{2, 0}, []int64{state.Admitted, state.DrawSize})

	sale = onSaleIn(2, 9, 1)
	sale.StartAt = time.Now().Add(time.Hour)
	s.load(sale)
	require.NoError(t, s.client.Del(t.Context(), keysOf(goods).room()).Err())
	s.prepare(admission.Record{Limit: 100, DrawSize: admission.NotDrawn})
	s.visit(admission.Join, 3)
	one := must.Get(s.Room(t.Context(), goods))(t)
	s.visit(admission.Join, 4)
	two := must.Get(s.Room(t.Context(), goods))(t)
	require.EqualValues(t, admission.NotDrawn, two.DrawSize)
	require.NotEqual(t, one.Digest, two.Digest)
	require.Zero(t, s.callNext(aTurn).Admitted)
}

// day is how far tests set a clock.
const day = 24 * time.Hour

// setClock makes the room one of a clock that is ahead of Redis'. A clock that is set back then is
// such a room.
func (s fixture) setClock(ahead time.Duration) {
	s.t.Helper()
	k, ms := keysOf(goods), ahead.Milliseconds()
	for _, field := range []string{"at", "paid"} {
		at := must.Get(s.client.HGet(s.t.Context(), k.room(), field).Float64())(s.t)
		require.NoError(s.t, s.client.HSet(s.t.Context(), k.room(), field, int64(at)+ms).Err())
	}
	for _, turn := range must.Get(s.client.ZRange(s.t.Context(), k.turns(), 0, -1).Result())(s.t) {
		require.NoError(s.t, s.client.ZIncrBy(s.t.Context(), k.turns(), float64(ms), turn).Err())
	}
}

// TestAdmit_SetClockKeepsAdmissions checks that an admission lasts as long as before when Redis'
// clock was set back or forward by a day.
func (s fixture) TestAdmit_SetClockKeepsAdmissions(t *testing.T) {
	s.openRoom(1, 1)
	s.visit(admission.Join, 1, 2)
	s.callNext(aTurn)
	until := s.visit(admission.Find, 1)[0].Until
	for _, ahead := range []time.Duration{day, -day} {
		s.setClock(ahead)
		require.Zero(t, s.callNext(aTurn).Missed)
		require.WithinDuration(t, until, s.visit(admission.Find, 1)[0].Until, time.Minute)
	}
	s.visit(admission.Leave, 1)
	require.Eventually(t, func() bool { return s.callNext(aTurn).Admitted == 2 }, time.Minute,
		time.Millisecond, "the rate's permits are not of tomorrow")
}

// TestAdmit_LaterStartStopsAdmissions checks a start that is moved later after the first buyers
// were called: they are not late while nobody can buy.
func (s fixture) TestAdmit_LaterStartStopsAdmissions(t *testing.T) {
	s.openRoom(1, 1)
	s.visit(admission.Join, 1, 2)
	s.callNext(2 * time.Second)
	start := func(in time.Duration) {
		at := time.Now().Add(in).UnixMilli()
		require.NoError(t, s.client.HSet(t.Context(), keysOf(goods).sale(), "start", at).Err())
	}
	start(time.Hour)
	for range 3 {
		s.setClock(-3 * time.Second) // as if so much time has passed
		require.Zero(t, s.callNext(aTurn).Missed)
	}
	require.NotZero(t, s.visit(admission.Find, 1)[0].Until)
	require.Equal(t, reservation.TooEarly, s.reserve(reservationOf(1, 1, 1))[0].Code)
	start(-time.Second)
	require.Equal(t, reservation.Taken, s.reserve(reservationOf(1, 1, 1))[0].Code)
}

// again loads the sale in its next epoch.
func (s fixture) again(units, limit int64) {
	s.t.Helper()
	state := must.Get(s.Room(s.t.Context(), goods))(s.t)
	sale := onSaleIn(1+admission.EpochOf(state.SaleLease), units, limit)
	sale.Admission = seckill.ByWaitingRoom
	s.load(sale)
}

// TestPrepare_ClockOfANewMasterKeepsAdmissions checks that an admission lasts as long as before on
// a new master whose clock is set otherwise: one that the replica has, and one that MySQL restores.
func (s fixture) TestPrepare_ClockOfANewMasterKeepsAdmissions(t *testing.T) {
	s.openRoom(9, 1)
	s.visit(admission.Join, 1)
	s.callNext(aTurn)
	until := s.visit(admission.Find, 1)[0].Until
	for _, ahead := range []time.Duration{day, -day} {
		for _, newer := range []int64{0, 1} {
			state := must.Get(s.Room(t.Context(), goods))(t)
			saved := must.Get(s.Turns(t.Context(), goods, state))(t)
			s.setClock(ahead)
			s.again(9, 1)
			s.prepare(admission.Record{
				Joined: 1000, Limit: 2000, DrawSize: 0, Admitted: 1, Turns: saved,
				Calls: state.Calls + newer,
			})
			require.Zero(t, s.callNext(aTurn).Missed)
			require.WithinDuration(t, until, s.visit(admission.Find, 1)[0].Until, time.Minute)
		}
	}
}

// TestPrepare_NewerTurnsReplaceThoseOfAReplica checks a replica that lagged. Since its state, buyer
// 1 has left, buyer 3 has seen the admission, and buyer 4 was called.
func (s fixture) TestPrepare_NewerTurnsReplaceThoseOfAReplica(t *testing.T) {
	s.openRoom(9, 1)
	s.visit(admission.Join, buyersUpTo(4)...)
	require.EqualValues(t, 4, s.callNext(aTurn).Called)
	s.visit(admission.Find, 2)
	replica := must.Get(s.Room(t.Context(), goods))(t)
	s.again(9, 1)
	older := s.prepare(admission.Record{
		Joined: 4, Limit: 1000, DrawSize: 0, Admitted: 1, Calls: replica.Calls,
		Turns: []admission.Turn{"1 9000"},
	})
	require.EqualValues(t, []int64{4, 4}, []int64{older.Admitted, older.Called})
	s.again(9, 1)
	state := s.prepare(admission.Record{
		Joined: 5, Limit: 1000, DrawSize: 0, Admitted: 5, Calls: older.Calls + 1,
		Turns: []admission.Turn{"b2 3500000", "b3 3500000", "4 3500000"},
	})
	require.EqualValues(t, []int64{5, 3}, []int64{state.Admitted, state.Called})
	require.Greater(t, state.Calls, older.Calls)
	seats := s.visit(admission.Find, 1, 2, 3, 4)
	require.Zero(t, seats[0].Until)
	for _, seat := range seats[1:] {
		require.WithinDuration(t, time.Now().Add(aTurn), seat.Until, 3*time.Minute)
	}
	bought := must.Get(s.reserveIn(admission.EpochOf(state.Lease), reservationOf(1, 3, 1)))(t)
	require.Equal(t, reservation.Taken, bought.Verdicts[0].Code)
	require.Equal(t, admission.Unknown, s.visit(admission.Find, 3)[0].Mark, "used, and not missed")
	require.EqualValues(t, 2, s.callNext(aTurn).Called)
}

// TestAdmit_EndedLateNumberIsNotCalledAgain checks a replica that lagged: a number is late there,
// and MySQL has that it was called. When that admission ends, the number is done.
func (s fixture) TestAdmit_EndedLateNumberIsNotCalledAgain(t *testing.T) {
	s.openRoom(9, 1)
	s.visit(admission.Join, 1)
	late := redis.Z{Score: 1, Member: 1}
	require.NoError(t, s.client.ZAdd(t.Context(), keysOf(goods).late(), late).Err())
	replica := must.Get(s.Room(t.Context(), goods))(t)
	s.again(9, 1)
	s.prepare(admission.Record{
		Joined: 1, Limit: 1000, DrawSize: 0, Admitted: 1, Calls: replica.Calls + 1,
		Turns: []admission.Turn{"1 0"},
	})
	state := s.callNext(aTurn)
	require.EqualValues(t, []int64{1, 0}, []int64{state.Missed, state.Called})
}

// TestJoin_TicketCountsAboveAMissedNumber checks a replica that lagged: it knows only the number of
// a buyer's missed turn, and the ticket has the number that the buyer got afterwards.
func (s fixture) TestJoin_TicketCountsAboveAMissedNumber(t *testing.T) {
	s.openRoom(1, 1)
	s.visit(admission.Join, 1)
	s.callNext(shortTurn)
	require.Eventually(t, func() bool {
		return s.callNext(aTurn).Missed == 1
	}, time.Minute, time.Millisecond)
	again := s.visit(admission.Join, 1)[0].Number
	bucket := keysOf(goods).bucket(bucketOf("1"))
	require.NoError(t, s.client.HSet(t.Context(), bucket, "1", 1).Err())
	require.Equal(t, again, s.restore(1, again).Number)
	require.Equal(t, again, s.restore(1, 1).Number, "the ticket of the missed turn")
}

// TestJoin_LeaverWithoutNumberEndsAdmission checks a loss after which Redis has the admission of a
// buyer, and not the number: leaving ends the admission.
func (s fixture) TestJoin_LeaverWithoutNumberEndsAdmission(t *testing.T) {
	s.openRoom(1, 1)
	s.prepareAgain(admission.Record{
		Joined: 1, Limit: 1000, DrawSize: 0, Admitted: 1,
		Turns: []admission.Turn{"b7 9000"}, Calls: 1,
	})
	require.EqualValues(t, 1, must.Get(s.Room(t.Context(), goods))(t).Called)
	require.Equal(t, admission.Unknown, s.visit(admission.Leave, 7)[0].Mark)
	require.Zero(t, must.Get(s.Room(t.Context(), goods))(t).Called)
}

// TestPrepare_RestoresTurnsWithoutRest checks those that the release before ADR 94 saved.
func (s fixture) TestPrepare_RestoresTurnsWithoutRest(t *testing.T) {
	s.openRoom(1, 1)
	s.prepareAgain(admission.Record{
		Joined: 1, Limit: 1000, DrawSize: 0, Admitted: 1, Calls: 1, Turns: []admission.Turn{"b7"},
	})
	until := s.visit(admission.Find, 7)[0].Until
	require.WithinDuration(t, time.Now().Add(30*time.Second), until, 10*time.Second)
}

// prepareAgain makes the room ready after Redis lost it.
func (s fixture) prepareAgain(r admission.Record) {
	s.t.Helper()
	require.NoError(s.t, s.client.Del(s.t.Context(), keysOf(goods).room()).Err())
	require.True(s.t, s.prepare(r).Ready())
}

// TestReserve_LeavesAUnitForEachAdmission raises the limit per buyer while five buyers are admitted
// for five units. Each of them still finds one.
func (s fixture) TestReserve_LeavesAUnitForEachAdmission(t *testing.T) {
	s.openRoom(5, 1)
	s.visit(admission.Join, buyersUpTo(5)...)
	require.EqualValues(t, 5, s.callNext(aTurn).Called)
	s.visit(admission.Find, buyersUpTo(5)...)
	require.NoError(t, s.client.HSet(t.Context(), keysOf(goods).sale(), "limit", 3).Err())
	first := s.reserve(reservationOf(1, 1, 3))[0]
	require.Equal(t, reservation.TooFew, first.Code)
	require.EqualValues(t, 1, first.Available)
	s.visit(admission.Leave, 5)
	verdicts := s.reserve(reservationOf(2, 1, 2), reservationOf(3, 2, 2), reservationOf(4, 2, 1),
		reservationOf(5, 3, 1), reservationOf(6, 4, 1))
	codes := make([]reservation.VerdictCode, len(verdicts))
	for i, v := range verdicts {
		codes[i] = v.Code
	}
	require.Equal(t, []reservation.VerdictCode{
		reservation.Taken, reservation.TooFew, reservation.Taken, reservation.Taken,
		reservation.Taken,
	}, codes)
}

// TestRoom_IsNotOverWhileUnitsAreThere checks a worker that was asleep when a merchant added units.
func (s fixture) TestRoom_IsNotOverWhileUnitsAreThere(t *testing.T) {
	s.openRoom(1, 1)
	lease := must.Get(s.Room(t.Context(), goods))(t).Lease
	for _, c := range []struct{ available, pending, called int }{
		{0, 0, 0}, {1, 0, 0}, {0, 1, 0}, {0, 0, 1}, {1, 1, 0}, {1, 0, 1}, {0, 1, 1},
	} {
		require.NoError(t, s.SetHeld(t.Context(), goods, lease, admission.Held{}, true))
		require.NoError(t, s.client.HSet(t.Context(), keysOf(goods).sale(), "avail", c.available,
			"pend", c.pending).Err())
		for range c.called {
			require.NoError(t, s.client.ZAdd(t.Context(), keysOf(goods).turns(),
				redis.Z{Score: 1e15, Member: 1}).Err())
		}
		require.Equal(t, c.available+c.pending+c.called == 0,
			must.Get(s.Room(t.Context(), goods))(t).Over, "%+v", c)
		require.NoError(t, s.client.Del(t.Context(), keysOf(goods).turns()).Err())
	}
}

// TestRoom_HasTheLeaseOfItsSale checks the state where Redis has no sale, and where no room was
// made ready.
func (s fixture) TestRoom_HasTheLeaseOfItsSale(t *testing.T) {
	state := must.Get(s.Room(t.Context(), goods))(t)
	want := admission.State{
		Gate: seckill.GateMissing, Now: state.Now, SaleLease: "/0", DrawSize: admission.NotDrawn,
		Details: admission.Details{Gaps: []admission.Gap{}},
	}
	require.Equal(t, want, state)
	s.load(onSaleIn(3, 5, 1))
	state = must.Get(s.Room(t.Context(), goods))(t)
	want.Gate, want.Now, want.Available = seckill.GateOpen, state.Now, 5
	want.SaleLease = s.view().Lease + "/3"
	require.Equal(t, want, state)
}

// TestPrepare_TicketRestoresPlace checks the loss of Redis: no number is handed out twice, a ticket
// restores its place, and a number that nobody shows holds up nobody.
func (s fixture) TestPrepare_TicketRestoresPlace(t *testing.T) {
	s.openRoom(100, 1)
	require.Equal(t, []int64{1, 2, 3, 4, 5}, numbersOf(s.visit(admission.Join, buyersUpTo(5)...)))
	require.NoError(t, s.client.Del(t.Context(), keysOf(goods).room(), keysOf(goods).turns(),
		keysOf(goods).done()).Err())
	for b := range buyersUpTo(5) {
		bucket := keysOf(goods).bucket(bucketOf(strconv.Itoa(b + 1)))
		require.NoError(t, s.client.Del(t.Context(), bucket).Err())
	}
	// MySQL has three numbers as joined, and had granted 1000.
	s.prepare(admission.Record{
		Joined: 1000, Limit: 2000, DrawSize: 0, Gaps: []admission.Gap{{From: 4, To: 1000}},
		Turns: []admission.Turn{"1 900000", "b9 900000"}, Calls: 1,
	})
	require.Equal(t, []int64{1001}, numbersOf(s.visit(admission.Join, 6)))
	require.NotZero(t, s.restore(1, 1).Until, "the admission of number 1 is restored")
	require.Equal(t, admission.Seat{Number: 4}, s.restore(4, 4))
	require.EqualValues(t, 1002, s.visit(admission.Join, 2)[0].Number)
	require.EqualValues(t, 2, s.restore(2, 2).Number, "the ticket is older than the new number")
	require.EqualValues(t, 1, s.client.GetBit(t.Context(), keysOf(goods).done(), 1002).Val(),
		"a buyer has one place")
	require.Eventually(t, func() bool { return s.callNext(aTurn).Admitted == 1002 }, time.Minute,
		time.Millisecond)
	require.NotZero(t, s.visit(admission.Find, 4)[0].Until)
	require.NotZero(t, s.visit(admission.Find, 6)[0].Until)
	_, seats, err := s.Join(t.Context(), goods, admission.Join,
		[]admission.Visit{{BuyerID: "5", Ticket: 5, Position: 1002}})
	require.NoError(t, err)
	require.Equal(t, admission.Late, seats[0].Mark, "shown after the last call, of its position")
	s.callNext(aTurn)
	require.NotZero(t, s.visit(admission.Find, 5)[0].Until)
	require.Equal(t, reservation.Taken, s.reserve(reservationOf(1, 9, 1))[0].Code)

	s.again(100, 1)
	s.prepare(admission.Record{
		Joined: 2000, Limit: 3000, DrawSize: 0, Gaps: []admission.Gap{{From: 4, To: 2000}},
	})
	for number, gap := range map[int64]int64{4: 0, 1002: 0, 1003: 1} {
		require.Equal(t, gap,
			s.client.GetBit(t.Context(), keysOf(goods).gap(), number).Val(), number)
	}
}

// TestJoin_TicketBeforeTheStartKeepsItsPosition checks that a number of a lost room, whose ticket
// is shown before the draw, is called in the order of the draw.
func (s fixture) TestJoin_TicketBeforeTheStartKeepsItsPosition(t *testing.T) {
	sale := onSale(1, 1)
	sale.Admission, sale.StartAt = seckill.ByWaitingRoom, time.Now().Add(time.Hour)
	s.load(sale)
	state := s.prepare(admission.Record{
		Joined: 1000, Limit: 2000, DrawSize: admission.NotDrawn,
		Gaps: []admission.Gap{{From: 1, To: 1000}},
	})
	for _, number := range []int64{3, 5} {
		_, seats, err := s.Join(t.Context(), goods, admission.Join,
			[]admission.Visit{{BuyerID: fmt.Sprint(number), Ticket: number}})
		require.NoError(t, err)
		require.Equal(t, []admission.Seat{{Number: number}}, seats)
	}
	started := time.Now().Add(-time.Second).UnixMilli()
	require.NoError(t, s.client.HSet(t.Context(), keysOf(goods).sale(), "start", started).Err())
	require.EqualValues(t, 1000, must.Get(s.Room(t.Context(), goods))(t).DrawSize)
	require.NoError(t, s.SetSeed(t.Context(), goods, state.Lease, "seed"))
	state = must.Get(s.Admit(t.Context(), goods, admission.Call{
		Numbers: []int64{4, 5, 3}, Life: aTurn,
	}))(t)
	require.EqualValues(t, []int64{1, 2}, []int64{state.Called, state.Admitted})
	require.NotZero(t, s.visit(admission.Find, 5)[0].Until)
	require.Zero(t, s.visit(admission.Find, 3)[0].Until)
}

// TestTurns_OfTheStateOnly has a worker sleep while Redis loses a room. The worker lists no
// admissions of the room that has replaced it, and none where there is no room.
func (s fixture) TestTurns_OfTheStateOnly(t *testing.T) {
	s.openRoom(9, 1)
	s.visit(admission.Join, buyersUpTo(3)...)
	state := s.callNext(aTurn)
	require.Len(t, must.Get(s.Turns(t.Context(), goods, state))(t), 3)
	lagging := state
	lagging.Calls++
	for name, lost := range map[string]admission.State{
		"another lease": {Lease: "a/1"}, "behind": lagging,
	} {
		_, err := s.Turns(t.Context(), goods, lost)
		require.ErrorContains(t, err, "is gone from redis", name)
	}
	require.NoError(t, s.client.Del(t.Context(), keysOf(goods).room(), keysOf(goods).turns()).Err())
	_, err := s.Turns(t.Context(), goods, state)
	require.ErrorContains(t, err, "is gone from redis")
}

// TestRetire_RemovesTheRoom checks that a retired sale leaves no key, and that nothing is removed
// of one that was changed or built again since.
func (s fixture) TestRetire_RemovesTheRoom(t *testing.T) {
	s.openRoom(3, 1)
	s.visit(admission.Join, buyersUpTo(200)...)
	s.callNext(aTurn)
	s.visit(admission.Leave, 100)
	extended := onSale(3, 1)
	extended.Version = 2
	require.NoError(t, s.UpdateSale(t.Context(), extended))
	seats := s.visit(admission.Find, buyersUpTo(200)...)
	for _, older := range []seckill.Sale{onSale(3, 1), onSaleIn(2, 3, 1)} {
		require.False(t, must.Get(s.Retire(t.Context(), older))(t))
		s.requireUnits(3, 0, 0)
		require.Equal(t, seats, s.visit(admission.Find, buyersUpTo(200)...))
	}
	require.True(t, must.Get(s.Retire(t.Context(), extended))(t))
	require.Empty(t, must.Get(s.client.Keys(t.Context(), "*").Result())(t))
}

// TestRoom_MillionBuyersFitIn32MB joins a million buyers, whose ids are UUIDs, in groups. Their
// places, the bitmaps and the keys may take at most 32 MB of Redis' memory.
func TestRoom_MillionBuyersFitIn32MB(t *testing.T) {
	s := open(t, env.Redis(t).Addr(), "")
	require.NoError(t, s.client.FlushAll(t.Context()).Err())
	s.openRoom(1, 1)
	state := must.Get(s.Room(t.Context(), goods))(t)
	require.NoError(t, s.RaiseLimit(t.Context(), goods, state.Lease, 2_000_000))
	used := func() int {
		info := must.Get(s.client.(*redis.Client).InfoMap(t.Context(), "memory").Result())(t)
		return must.Get(strconv.Atoi(info["Memory"]["used_memory"]))(t)
	}
	before, random := used(), rand.New(rand.NewPCG(1, 1))
	const buyers = 1_000_000
	visits := make([]admission.Visit, reservation.MaxBatch)
	for from := int64(0); from < buyers; from += reservation.MaxBatch {
		for i := range visits {
			a, b := random.Uint64(), random.Uint64()
			visits[i].BuyerID = fmt.Sprintf("%08x-%04x-%04x-%04x-%012x", a>>32, a>>16&0xffff,
				a&0xffff, b>>48, b&0xffffffffffff)
		}
		_, seats, err := s.Join(t.Context(), goods, admission.Join, visits)
		require.NoError(t, err)
		require.Equal(t, from+1, seats[0].Number)
	}
	took := used() - before
	t.Logf("%d bytes for %d buyers", took, buyers)
	require.Less(t, took, 32_000_000)
}
