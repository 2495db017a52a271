package admission_test

import (
	"context"
	"crypto/sha1"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/sync/errgroup"

	"flashsale.dev/seckill/internal/apierror"
	"flashsale.dev/seckill/internal/order/rebuild"
	"flashsale.dev/seckill/internal/ordersn"
	"flashsale.dev/seckill/internal/redisstore"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/catalog"
	"flashsale.dev/seckill/internal/seckill/reservation"
	"flashsale.dev/seckill/internal/seckill/salechange"
	"flashsale.dev/seckill/internal/sqlstore"
	"flashsale.dev/seckill/internal/testing/must"
	"flashsale.dev/seckill/internal/testing/servers"
	"flashsale.dev/seckill/internal/waitingroom"
	"flashsale.dev/seckill/internal/waitingroom/admission"
)

var env = servers.NewSuite()

func TestMain(m *testing.M) { goleak.VerifyTestMain(env.Around(m)) }

var secret = []byte("a secret of the tests, 32 bytes.")

// fixture is a sale with a waiting room, on a real Redis and MySQL.
type fixture struct {
	t       *testing.T
	client  *redis.Client
	redis   *redisstore.Store
	store   *sqlstore.Store
	service *admission.Service
	id      int64
}

func open(t *testing.T, units int64, startsIn time.Duration) *fixture {
	h := &fixture{t: t, client: redis.NewClient(&redis.Options{Addr: env.Redis(t).Addr()})}
	t.Cleanup(func() { require.NoError(t, h.client.Close()) })
	require.NoError(t, h.client.FlushAll(t.Context()).Err())
	h.store = must.Get(sqlstore.Open(t.Context(), env.MySQL(t).NewCopy(t, migrate(t)), ""))(t)
	t.Cleanup(func() { require.NoError(t, h.store.Close()) })
	h.redis = redisstore.New(h.client, redisstore.Options{})
	now := time.Now()
	sale := seckill.NewSale{
		Title: "x", Stock: units, PerBuyerLimit: 1, StartAt: now.Add(startsIn),
		EndAt: now.Add(time.Hour), Rate: seckill.DefaultRate(), Admission: seckill.ByWaitingRoom,
	}.Draft("1", now)
	must.Get(h.store.CreateSale(t.Context(), sale, salechange.IdempotencyKey{}))(t)
	h.id = sale.GoodsID
	h.newService()
	h.rebuild()
	return h
}

// migrate returns a function that creates the schema in a database.
func migrate(t *testing.T) func(dsn string) {
	return func(dsn string) {
		store := must.Get(sqlstore.Open(t.Context(), dsn, ""))(t)
		require.NoError(t, errors.Join(store.Migrate(t.Context()), store.Close()))
	}
}

// newService makes a service that remembers nothing.
func (h *fixture) newService() { h.service = h.newNode() }

// newNode returns the service of another node.
func (h *fixture) newNode() *admission.Service { return h.newNodeOf(h.redis) }

// newNodeOf returns the service of a node that has the rooms of a Redis.
func (h *fixture) newNodeOf(redis admission.Redis) *admission.Service {
	sales := catalog.NewCatalog(catalog.NewSaleReader(h.redis, h.store), ordersn.NewKeys(secret))
	return admission.NewService(sales, redis, h.store, [][]byte{secret})
}

// rebuild builds the sale in Redis again, as after the loss of a master.
func (h *fixture) rebuild() {
	ctx := h.t.Context()
	token := must.Get(h.store.NextRebuildToken(ctx, h.id))(h.t).Number
	sale := must.Get(h.store.Sale(ctx, h.id))(h.t)
	must.Get(h.redis.Shut(ctx, h.id, sale.Epoch))(h.t)
	opener := rebuild.Opener{Store: h.store, Redis: h.redis, PaymentTimeout: time.Minute}
	must.Get(opener.Open(ctx, h.id, token))(h.t)
}

// admit runs an admitter while a function runs.
func (h *fixture) admit(life time.Duration, while func()) {
	h.runAdmitter(&admission.Admitter{Redis: h.redis, Store: h.store, Life: life}, nil, while)
}

// admitWith runs an admitter with other servers, and a sale that is changed.
func (h *fixture) admitWith(
	store admission.Store, redis admission.Redis, change func(*seckill.Sale), while func(),
) {
	a := &admission.Admitter{Redis: redis, Store: store, Life: time.Hour}
	h.runAdmitter(a, change, while)
}

func (h *fixture) runAdmitter(a *admission.Admitter, change func(*seckill.Sale), while func()) {
	sale := must.Get(h.store.Sale(h.t.Context(), h.id))(h.t)
	if change != nil {
		change(&sale)
	}
	a.Lines = func() []seckill.Sale { return []seckill.Sale{sale} }
	a.PaymentTimeout, a.Log = time.Minute, slog.New(slog.DiscardHandler)
	ctx, stop := context.WithCancel(h.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	defer func() {
		stop()
		require.NoError(h.t, <-ended)
	}()
	h.eventually(func(s admission.State) bool { return s.Ready() })
	while()
}

func (h *fixture) state() admission.State {
	h.t.Helper()
	return must.Get(h.redis.Room(h.t.Context(), h.id))(h.t)
}

func (h *fixture) eventually(is func(admission.State) bool) {
	h.t.Helper()
	require.Eventually(h.t, func() bool { return is(h.state()) }, time.Minute, 5*time.Millisecond)
}

// record reads the room in MySQL.
func (h *fixture) record() admission.Record {
	h.t.Helper()
	return must.Get(h.store.WaitingRoom(h.t.Context(), h.id))(h.t)
}

func (h *fixture) eventuallySaved(is func(admission.Record) bool) {
	h.t.Helper()
	require.Eventually(h.t, func() bool { return is(h.record()) }, time.Minute, time.Millisecond)
}

// eventuallyCalled waits until MySQL has a watermark and so many admissions.
func (h *fixture) eventuallyCalled(admitted int64, turns int) {
	h.t.Helper()
	h.eventuallySaved(func(r admission.Record) bool {
		return r.Admitted == admitted && len(r.Turns) == turns
	})
}

// lose empties Redis and builds the sale again.
func (h *fixture) lose() {
	h.t.Helper()
	require.NoError(h.t, h.client.FlushAll(h.t.Context()).Err())
	h.rebuild()
}

func (h *fixture) join(buyer int64, ticket string) admission.Place {
	h.t.Helper()
	return must.Get(h.service.Join(h.t.Context(), h.id, fmt.Sprint(buyer), ticket))(h.t)
}

// joinAll joins buyers and returns their places.
func (h *fixture) joinAll(from, to int64) map[int64]admission.Place {
	places := map[int64]admission.Place{}
	for b := from; b <= to; b++ {
		places[b] = h.join(b, "")
	}
	return places
}

// buy reserves one unit.
func (h *fixture) buy(buyer int64) reservation.VerdictCode {
	h.t.Helper()
	epoch := must.Get(h.store.Sale(h.t.Context(), h.id))(h.t).Epoch
	n := ordersn.NewKeys(secret).Issue(h.id, fmt.Sprint(buyer), time.Now())
	res := must.Get(h.redis.Reserve(h.t.Context(), h.id, epoch, []reservation.Reservation{{
		OrderLine: reservation.OrderLine{
			OrderSn: n.String(), BuyerID: fmt.Sprint(buyer), Quantity: 1, Epoch: epoch,
		}, PathEnd: n.ExpiresAt(),
	}}))(h.t)
	return res.Verdicts[0].Code
}

// snapshot returns a function that brings Redis back to this moment, as a failover to a replica
// that lagged does.
func (h *fixture) snapshot() func() {
	ctx, dumps := h.t.Context(), map[string]string{}
	for _, key := range must.Get(h.client.Keys(ctx, "*").Result())(h.t) {
		dumps[key] = must.Get(h.client.Dump(ctx, key).Result())(h.t)
	}
	return func() {
		// A promotion changes the id of the master.
		require.NoError(h.t, h.client.ReplicaOf(ctx, "127.0.0.1", "1").Err())
		require.NoError(h.t, h.client.ReplicaOf(ctx, "NO", "ONE").Err())
		require.NoError(h.t, h.client.FlushAll(ctx).Err())
		for key, dump := range dumps {
			require.NoError(h.t, h.client.Restore(ctx, key, 0, dump).Err())
		}
	}
}

// TestRoom_LossOfRedisKeepsEveryPlace checks two losses: all of Redis, and all since a moment,
// which a failover to a replica that lagged loses. No number is handed out twice, and every ticket
// restores its number, also of buyers whose numbers MySQL had not saved.
func TestRoom_LossOfRedisKeepsEveryPlace(t *testing.T) {
	for name, lagging := range map[string]bool{"emptied": false, "lagging replica": true} {
		t.Run(name, func(t *testing.T) {
			h := open(t, 10, time.Hour)
			var places map[int64]admission.Place
			h.admit(time.Minute, func() {
				places = h.joinAll(1, 100)
				h.eventuallySaved(func(r admission.Record) bool { return r.Joined == 100 })
			})
			back := h.snapshot()
			maps.Copy(places, h.joinAll(101, 150)) // nobody saves these
			if lagging {
				back()
				h.rebuild()
			} else {
				h.lose()
			}
			h.admit(time.Minute, func() {
				h.newService()
				numbers := map[int64]bool{}
				for _, p := range places {
					numbers[p.Number] = true
				}
				require.Len(t, numbers, 150)
				for b, p := range h.joinAll(1001, 1100) {
					require.False(t, numbers[p.Number], "buyer %d got a number again", b)
					numbers[p.Number] = true
				}
				for b, p := range places {
					again := h.join(b, p.Ticket)
					require.Equal(t, p.Number, again.Number)
					require.Equal(t, admission.Waiting, again.State)
				}
			})
		})
	}
}

// TestRoom_LeaverHasOneChanceAfterALoss checks a buyer who leaves and joins again and again before
// the draw. After the loss of Redis, which alone knows who left, all tickets are of one number.
func TestRoom_LeaverHasOneChanceAfterALoss(t *testing.T) {
	h := open(t, 1, time.Hour)
	h.joinAll(1, 3)
	tickets := map[string]bool{}
	for range 20 {
		p := h.join(99, "")
		require.EqualValues(t, 4, p.Number)
		tickets[p.Ticket] = true
		require.NoError(t, h.service.Leave(t.Context(), h.id, "99"))
		_, err := h.newNode().Find(t.Context(), h.id, "99", p.Ticket)
		require.Equal(t, apierror.NotFound, apierror.ReasonOf(err))
	}
	require.Len(t, tickets, 1)
	require.EqualValues(t, 4, h.state().Joined)
	h.lose()
	h.newService()
	for ticket := range tickets {
		require.EqualValues(t, 4, h.join(99, ticket).Number)
	}
}

// stoppedJoins is a Redis whose calls for buyers wait for a channel.
type stoppedJoins struct {
	admission.Redis
	stopped, proceed chan struct{}
}

func (s stoppedJoins) Join(
	ctx context.Context, goodsID int64, mode admission.Mode, visits []admission.Visit,
) (admission.State, []admission.Seat, error) {
	s.stopped <- struct{}{}
	<-s.proceed
	return s.Redis.Join(context.WithoutCancel(ctx), goodsID, mode, visits)
}

// TestService_TicketThatMeetsTheDrawOvertakesNobody checks the schedule: Redis is lost, a node
// reads a ticket before the draw, and its call arrives after the draw. The buyer's turn is the last
// one.
func TestService_TicketThatMeetsTheDrawOvertakesNobody(t *testing.T) {
	h := open(t, 1, 4*time.Second)
	places := h.joinAll(1, 5) // nobody saves these
	h.lose()
	h.newService()
	must.Get(h.service.Status(t.Context(), h.id))(t) // makes the room ready
	seed := must.Get(waitingroom.ParseSeed(h.record().Seed))(t)
	draw := waitingroom.NewDraw(seed, nil, uint32(h.state().Joined))
	byPosition := slices.SortedFunc(maps.Keys(places), func(a, b int64) int {
		return int(draw.Position(places[a].Number) - draw.Position(places[b].Number))
	})
	last := byPosition[4]
	for _, b := range byPosition[:4] {
		require.Equal(t, places[b].Number, h.join(b, places[b].Ticket).Number)
	}
	stop := stoppedJoins{h.redis, make(chan struct{}), make(chan struct{})}
	node := h.newNodeOf(stop)
	answer := make(chan admission.Place, 1)
	go func() {
		p, _ := node.Join(t.Context(), h.id, fmt.Sprint(last), places[last].Ticket)
		answer <- p
	}()
	<-stop.stopped
	require.EqualValues(t, admission.NotDrawn, h.state().DrawSize)
	h.admit(time.Hour, func() {
		h.eventually(func(s admission.State) bool { return s.Called == 1 })
		close(stop.proceed)
		var p admission.Place
		select {
		case <-stop.stopped: // asks again with the position
			p = <-answer
		case p = <-answer:
		}
		require.Equal(t, []any{places[last].Number, draw.Position(p.Number), admission.Waiting},
			[]any{p.Number, p.Position, p.State})
		for _, b := range byPosition {
			require.Eventually(t, func() bool {
				return h.service.Require(t.Context(), h.id, fmt.Sprint(b)) == nil
			}, 10*time.Second, 10*time.Millisecond, "the turn of buyer %d of %v", b, byPosition)
			require.NoError(t, h.service.Leave(t.Context(), h.id, fmt.Sprint(b)))
		}
	})
}

// TestRoom_GapsCountAsNobody checks the figures after a loss of Redis before the draw and one after
// it. Buyers see how many others are called before them, and a ticket from a gap adds none to them.
func TestRoom_GapsCountAsNobody(t *testing.T) {
	h := open(t, 2, 5*time.Second)
	var places map[int64]admission.Place
	lose := func() {
		h.lose()
		h.newService()
	}
	h.admit(time.Hour, func() {
		places = h.joinAll(1, 20)
		h.eventuallySaved(func(r admission.Record) bool { return r.Joined == 20 })
	})
	lose()
	h.admit(time.Hour, func() {
		maps.Copy(places, h.joinAll(21, 30))
		status := must.Get(h.newNode().Status(t.Context(), h.id))(t)
		require.EqualValues(t, []int64{30, 10_010},
			[]int64{status.Counted(status.Joined), status.Joined})
		h.eventually(func(s admission.State) bool { return s.Called == 2 })
		h.eventuallySaved(func(r admission.Record) bool {
			return r.Joined == 10_010 && len(r.Turns) == 2
		})
	})
	lose()
	h.admit(time.Hour, func() {
		last := h.join(31, "")
		require.Equal(t, []any{int64(28), 29 * time.Millisecond}, []any{last.Ahead, last.ETA})
		status := must.Get(h.newNode().Status(t.Context(), h.id))(t)
		require.EqualValues(t, []int64{31, 2},
			[]int64{status.Counted(status.Joined), status.Counted(status.Admitted)})
		var positions []int64
		for b, p := range places {
			places[b] = must.Get(h.service.Find(t.Context(), h.id, fmt.Sprint(b), p.Ticket))(t)
			positions = append(positions, places[b].Position)
		}
		slices.Sort(positions)
		for _, p := range places {
			require.EqualValues(t, max(0, slices.Index(positions, p.Position)-2), p.Ahead)
		}
		ofGap := waitingroom.NewTickets(secret).Sign(h.id, "77", last.Number-1)
		require.Equal(t, last.Number-1, h.join(77, ofGap).Number)
		require.EqualValues(t, 28, h.join(77, ofGap).Ahead)
		for _, node := range []*admission.Service{h.service, h.newNode()} {
			again := must.Get(node.Find(t.Context(), h.id, "31", last.Ticket))(t)
			require.EqualValues(t, 28, again.Ahead)
		}
	})
}

// TestRoom_RebuildSkipsNoNumber checks that a rebuild on a master that kept its data leaves no gap.
func TestRoom_RebuildSkipsNoNumber(t *testing.T) {
	h := open(t, 10, time.Hour)
	h.admit(time.Minute, func() {
		first := h.joinAll(1, 5)
		h.rebuild()
		h.eventually(func(s admission.State) bool { return s.Ready() })
		h.newService()
		require.EqualValues(t, 6, h.join(6, "").Number)
		require.Equal(t, first[3].Number, h.join(3, "").Number)
		require.Empty(t, h.state().Gaps)
	})
}

// TestRoom_DigestIsAChainOfTheJoins checks the digest against its definition in package
// waitingroom, over groups of one and of several buyers.
func TestRoom_DigestIsAChainOfTheJoins(t *testing.T) {
	h := open(t, 10, time.Hour)
	must.Get(h.service.Status(t.Context(), h.id))(t) // makes the room ready
	digest, number := "", 0
	for _, buyers := range [][]string{{"7"}, {"8", "user-9"}, {"a", "b", "c"}} {
		var group []admission.Visit
		var joins []string
		for _, buyer := range buyers {
			number++
			group = append(group, admission.Visit{BuyerID: buyer})
			joins = append(joins, fmt.Sprintf("%s:%d", buyer, number))
		}
		_, _, err := h.redis.Join(t.Context(), h.id, admission.Join, group)
		require.NoError(t, err)
		digest = fmt.Sprintf("%x", sha1.Sum([]byte(digest+strings.Join(joins, " "))))
		require.Equal(t, digest, h.state().Digest)
	}
}

// TestService_RoomNeedsNoAdmitter checks that buyers join as soon as a sale is exposed, and that a
// node restores a room with its admissions.
func TestService_RoomNeedsNoAdmitter(t *testing.T) {
	h := open(t, 1, time.Second)
	p := h.join(1, "")
	require.EqualValues(t, 1, p.Number)
	h.admit(time.Hour, func() { h.eventuallyCalled(1, 1) })
	h.lose()
	h.newService()
	p = must.Get(h.service.Find(t.Context(), h.id, "1", p.Ticket))(t)
	require.Equal(t, admission.Admitted, p.State)
	require.WithinDuration(t, time.Now().Add(time.Hour), p.Until, 2*time.Minute)
}

// TestService_RushNeedsNoAdmitter checks that a node has numbers granted where its buyers have used
// them up before the next step of the line.
func TestService_RushNeedsNoAdmitter(t *testing.T) {
	const buyers = 25_000
	h := open(t, 1, time.Hour)
	var rush errgroup.Group
	rush.SetLimit(500)
	for buyer := range buyers {
		rush.Go(func() error {
			_, err := h.service.Join(t.Context(), h.id, strconv.Itoa(buyer+1), "")
			return err
		})
	}
	require.NoError(t, rush.Wait())
	require.EqualValues(t, buyers, h.state().Joined)
}

// over is a catalog in which a sale has ended.
type over struct{ sale seckill.Sale }

func (o over) Sale(context.Context, int64) (seckill.View, error) {
	o.sale.EndAt = time.Now().Add(-time.Second)
	return seckill.View{Sale: o.sale, Now: time.Now()}, nil
}

// TestRoom_DrawIsPublicAfterTheEnd checks that a draw can still be verified when Redis has
// forgotten the room. A room which ended before its draw keeps its seed secret.
func TestRoom_DrawIsPublicAfterTheEnd(t *testing.T) {
	for name, startsIn := range map[string]time.Duration{"drawn": time.Second, "not": time.Hour} {
		t.Run(name, func(t *testing.T) {
			h := open(t, 3, startsIn)
			h.admit(time.Hour, func() {
				h.joinAll(1, 20)
				if name == "drawn" {
					h.eventually(func(s admission.State) bool { return s.Seed != "" })
				}
			})
			before := h.state()
			require.NoError(t, h.client.FlushAll(t.Context()).Err())
			sale := must.Get(h.store.Sale(t.Context(), h.id))(t)
			ended := admission.NewService(over{sale}, h.redis, h.store, [][]byte{secret})
			status := must.Get(ended.Status(t.Context(), h.id))(t)
			require.Equal(t, waitingroom.PhaseOver, status.Phase())
			require.Equal(t, []any{before.Commitment, before.Seed, before.DrawSize},
				[]any{status.Commitment, status.Seed, status.DrawSize})
			if name == "drawn" {
				require.Equal(t, before.Digest, status.Digest)
				require.Len(t, status.Seed, 64)
			} else {
				require.Empty(t, status.Seed+status.Digest)
			}
		})
	}
}

// TestRoom_RetiredSaleHasNoPlaces checks that the room of a sale that Redis has forgotten for good
// is over, and never "ask again".
func TestRoom_RetiredSaleHasNoPlaces(t *testing.T) {
	h := open(t, 3, -time.Second)
	ctx := t.Context()
	h.join(1, "")
	require.NoError(t, h.client.FlushAll(ctx).Err())
	sale := must.Get(h.store.Sale(ctx, h.id))(t)
	sale.Retired = true
	rooms := admission.NewService(over{sale}, h.redis, h.store, [][]byte{secret})
	_, err := rooms.Find(ctx, h.id, "1", "")
	require.Equal(t, apierror.NotFound, apierror.ReasonOf(err), "%v", err)
	_, err = rooms.Join(ctx, h.id, "1", "")
	require.Equal(t, apierror.Ended, apierror.ReasonOf(err), "%v", err)
	require.NoError(t, rooms.Leave(ctx, h.id, "1"))
}

// TestRoom_ClosedSaleIsOverAfterALoss checks a sale that was closed while buyers waited, and whose
// master was lost afterwards: no admitter serves its room any more.
func TestRoom_ClosedSaleIsOverAfterALoss(t *testing.T) {
	h := open(t, 3, time.Hour)
	ctx, waiting := t.Context(), h.join(1, "")
	must.Get(h.store.CloseSale(ctx, h.id, time.Now()))(t)
	h.lose()
	h.newService()
	_, err := h.service.Find(ctx, h.id, "2", "")
	require.Equal(t, apierror.NotFound, apierror.ReasonOf(err), "%v", err)
	_, err = h.service.Join(ctx, h.id, "2", "")
	require.Equal(t, apierror.Ended, apierror.ReasonOf(err), "%v", err)
	require.Equal(t, admission.PlaceOver, h.join(1, waiting.Ticket).State)
	require.NoError(t, h.service.Leave(ctx, h.id, "1"))
}

// TestRoom_LossWhileBuyersAreAdmitted checks that admissions survive the loss of Redis and the
// death of an admitter. Nobody who waits is overtaken, and numbers which nobody shows hold up
// nobody.
func TestRoom_LossWhileBuyersAreAdmitted(t *testing.T) {
	h := open(t, 3, 5*time.Second)
	var places map[int64]admission.Place
	h.admit(time.Hour, func() {
		places = h.joinAll(1, 20)
		h.eventuallyCalled(3, 3)
	})
	before := h.state()
	require.EqualValues(t, 20, before.DrawSize)
	h.lose()
	h.admit(time.Hour, func() {
		after := h.state()
		require.Equal(t, []any{before.DrawSize, before.Digest, before.Seed, before.Commitment},
			[]any{after.DrawSize, after.Digest, after.Seed, after.Commitment})
		require.EqualValues(t, 3, after.Called)
		h.newService()
		var admitted []int64
		for b, p := range places {
			p = must.Get(h.service.Find(t.Context(), h.id, fmt.Sprint(b), p.Ticket))(t)
			if p.State == admission.Admitted {
				require.LessOrEqual(t, p.Position, int64(3))
				admitted = append(admitted, b)
			} else {
				require.Equal(t, admission.Waiting, p.State)
				require.Equal(t, p.Position-4, p.Ahead)
				require.Equal(t, apierror.Waiting,
					apierror.ReasonOf(h.service.Require(t.Context(), h.id, fmt.Sprint(b))))
			}
		}
		require.Len(t, admitted, 3)
		for _, b := range admitted {
			require.NoError(t, h.service.Require(t.Context(), h.id, fmt.Sprint(b)))
		}
		for _, b := range admitted[:2] {
			require.Equal(t, reservation.Taken, h.buy(b))
		}
		require.NoError(t, h.service.Leave(t.Context(), h.id, fmt.Sprint(admitted[2])))
		h.eventually(func(s admission.State) bool { return s.Called == 1 && s.Admitted == 4 })
		require.EqualValues(t, 1, h.state().Available)
	})
}

// TestRoom_EndedAdmissionsHoldNoUnitsAfterAFailover checks a replica that lagged: it has the
// admissions of two buyers who have bought and left since. Their units go to the next in line at
// once.
func TestRoom_EndedAdmissionsHoldNoUnitsAfterAFailover(t *testing.T) {
	h := open(t, 3, time.Second)
	places := h.joinAll(1, 9)
	byPosition := map[int64]int64{} // buyers
	find := func(b int64) admission.Place {
		return must.Get(h.newNode().Find(t.Context(), h.id, fmt.Sprint(b), places[b].Ticket))(t)
	}
	var lose func()
	h.admit(time.Hour, func() {
		h.eventuallyCalled(3, 3)
		for b := range places {
			byPosition[find(b).Position] = b
		}
		lose = h.snapshot()
		require.Equal(t, reservation.Taken, h.buy(byPosition[1]))
		require.NoError(t, h.service.Leave(t.Context(), h.id, fmt.Sprint(byPosition[2])))
		h.eventuallyCalled(4, 2)
	})
	lose()
	h.rebuild()
	h.admit(time.Hour, func() {
		h.eventually(func(s admission.State) bool { return s.Called == 3 })
		require.EqualValues(t, 5, h.state().Admitted, "the rebuilt sale has a unit more")
		for position, b := range byPosition {
			want := admission.Waiting
			switch position {
			case 1, 2:
				continue
			case 3, 4, 5:
				want = admission.Admitted
			}
			require.Equal(t, want, find(b).State, "position %d", position)
		}
	})
}

// askFunc asks for a buyer's place with a ticket.
type askFunc = func(
	ctx context.Context, goodsID int64, buyerID, ticket string,
) (admission.Place, error)

// TestRoom_TicketCountsAfterAFailover checks a replica that lagged: it has the number of a buyer
// who has seen the turn, left, and joined again since. The ticket of the later number counts.
func TestRoom_TicketCountsAfterAFailover(t *testing.T) {
	for name, ask := range map[string]func(*admission.Service) askFunc{
		"find": func(s *admission.Service) askFunc { return s.Find },
		"join": func(s *admission.Service) askFunc { return s.Join },
	} {
		t.Run(name, func(t *testing.T) {
			h := open(t, 1, 2*time.Second)
			places := h.joinAll(1, 2)
			lose := h.snapshot()
			var first, second int64
			var again admission.Place
			h.admit(time.Hour, func() {
				h.eventually(func(s admission.State) bool { return s.Called == 1 })
				first, second = 1, 2
				if h.join(1, places[1].Ticket).State != admission.Admitted {
					first, second = 2, 1
				}
				require.Equal(t, admission.Admitted, h.join(first, "").State)
				require.NoError(t, h.service.Leave(t.Context(), h.id, fmt.Sprint(first)))
				again = h.join(first, "")
				require.EqualValues(t, 3, again.Number)
				h.eventuallySaved(func(r admission.Record) bool {
					return r.Joined == 3 && r.Admitted == 2 && len(r.Turns) == 1
				})
			})
			lose()
			h.rebuild()
			h.admit(time.Hour, func() {
				require.Equal(t, admission.Admitted,
					must.Get(h.newNode().Find(t.Context(), h.id, fmt.Sprint(second), ""))(t).State)
				require.NoError(t, h.newNode().Leave(t.Context(), h.id, fmt.Sprint(second)))
				h.eventually(func(s admission.State) bool { return s.Admitted > 2 })
				find := ask(h.newNode())
				p := must.Get(find(t.Context(), h.id, fmt.Sprint(first), again.Ticket))(t)
				require.Equal(t, []any{again.Number, admission.Admitted}, []any{p.Number, p.State})

				// Redis has the former number again, and has lost how both ended.
				h.eventuallySaved(func(r admission.Record) bool { return r.Admitted > 2 })
				lose()
				h.rebuild()
				h.eventually(func(s admission.State) bool { return s.Ready() })
				turns := fmt.Sprintf("sk:{%d}:turns", h.id)
				require.NoError(t, h.client.Del(t.Context(), turns).Err())
				find = ask(h.newNode())
				p = must.Get(find(t.Context(), h.id, fmt.Sprint(first), again.Ticket))(t)
				if name == "join" {
					require.Equal(t, admission.Waiting, p.State)
					require.Greater(t, p.Number, again.Number)
				} else {
					require.Equal(t, admission.Missed, p.State)
				}
			})
		})
	}
}

// sleeping is the Redis of a node that sleeps once, before it ends a number.
type sleeping struct {
	admission.Redis
	meanwhile func()
}

func (s *sleeping) Join(
	ctx context.Context, goodsID int64, mode admission.Mode, visits []admission.Visit,
) (admission.State, []admission.Seat, error) {
	if mode == admission.Leave && s.meanwhile != nil {
		run := s.meanwhile
		s.meanwhile = nil
		run()
	}
	return s.Redis.Join(ctx, goodsID, mode, visits)
}

// TestRoom_RepeatedJoinKeepsThePlace loses Redis after a buyer has missed a turn. The buyer joins
// again, and repeats the call at another node while the first node sleeps. The repetition has the
// place, and the first call must not end it: others have joined behind it.
func TestRoom_RepeatedJoinKeepsThePlace(t *testing.T) {
	h := open(t, 1, 2*time.Second)
	places := h.joinAll(1, 2)
	h.admit(100*time.Millisecond, func() { h.eventuallyCalled(2, 0) })
	h.lose()
	join := func(node *admission.Service, buyer, ticket string) admission.Place {
		return must.Get(node.Join(t.Context(), h.id, buyer, ticket))(t)
	}
	awake, ticket := h.newNode(), places[1].Ticket
	var again, behind admission.Place
	asleep := h.newNodeOf(&sleeping{h.redis, func() {
		again, behind = join(awake, "1", ticket), join(awake, "3", "")
	}})
	require.Equal(t, again.Number, join(asleep, "1", ticket).Number)
	require.Equal(t, admission.Waiting, again.State)
	require.Less(t, again.Number, behind.Number)
	require.Equal(t, again.Number, join(awake, "1", again.Ticket).Number)
}

// TestService_PollsOfAPlaceDoNotAskRedis checks that the status and the places of those who wait
// come from memory.
func TestService_PollsOfAPlaceDoNotAskRedis(t *testing.T) {
	h := open(t, 5, time.Hour)
	h.admit(time.Minute, func() {})
	p := h.join(7, "")
	must.Get(h.service.Status(t.Context(), h.id))(t)
	calls := func() int {
		info := must.Get(h.client.InfoMap(t.Context(), "stats").Result())(t)
		return must.Get(strconv.Atoi(info["Stats"]["total_commands_processed"]))(t)
	}
	polls := func(n int) (first, last int) {
		first = calls()
		for range n {
			must.Get(h.service.Status(t.Context(), h.id))(t)
			got := must.Get(h.service.Find(t.Context(), h.id, "7", p.Ticket))(t)
			require.Equal(t, p.Number, got.Number)
		}
		return first, calls()
	}
	// A status is read again when it is a second old, so that some attempt has no read in it.
	require.Eventually(t, func() bool {
		first, last := polls(1000)
		return last-first == 1 // INFO itself
	}, time.Minute, time.Millisecond)
}

// TestRoom_RebuildKeepsTheDrawOfTheStart checks the schedule: the sale starts, buyers join late,
// and a rebuild comes before MySQL has the draw. The late buyers are not in the draw.
func TestRoom_RebuildKeepsTheDrawOfTheStart(t *testing.T) {
	h := open(t, 10, 2*time.Second)
	h.joinAll(1, 5)
	h.eventually(func(s admission.State) bool { return s.DrawSize == 5 })
	h.joinAll(6, 8)
	before := h.state()
	h.rebuild()
	h.admit(time.Minute, func() {
		h.eventually(func(s admission.State) bool { return s.Seed != "" })
		require.Equal(t, []any{before.DrawSize, before.Digest},
			[]any{h.state().DrawSize, h.state().Digest})
	})
	record := h.record()
	require.EqualValues(t, 5, record.DrawSize)
	require.GreaterOrEqual(t, record.Joined, record.DrawSize,
		"a loss now leaves no gap in the draw")
}

// TestService_TicketOfAnEndedPlaceIsNone checks the tickets of a buyer who left before the turn,
// also on another node. It checks those of a buyer who has bought all that one may buy.
func TestService_TicketOfAnEndedPlaceIsNone(t *testing.T) {
	h := open(t, 1, time.Second)
	other := h.newNode()
	places := h.joinAll(1, 3)
	h.admit(time.Minute, func() {
		h.eventually(func(s admission.State) bool { return s.Called == 1 })
		var winner, leaver int64
		for b, p := range places {
			p = must.Get(h.newNode().Find(t.Context(), h.id, fmt.Sprint(b), p.Ticket))(t)
			if p.State == admission.Admitted {
				winner = b
			} else {
				leaver = b
			}
		}
		require.NoError(t, h.service.Leave(t.Context(), h.id, fmt.Sprint(leaver)))
		require.Equal(t, reservation.Taken, h.buy(winner))
		for _, node := range []*admission.Service{h.service, other} {
			for _, b := range []int64{leaver, winner} {
				require.Eventually(t, func() bool {
					_, err := node.Find(t.Context(), h.id, fmt.Sprint(b), places[b].Ticket)
					return apierror.ReasonOf(err) == apierror.NotFound
				}, 10*time.Second, 10*time.Millisecond)
			}
		}
	})
}

// withoutGrants is a MySQL that grants no numbers.
type withoutGrants struct{ admission.Store }

func (withoutGrants) GrantNumbers(
	context.Context, int64, admission.Grant,
) (admission.Record, error) {
	return admission.Record{}, errors.New("MySQL is away")
}

// countedRooms counts the readings of rooms.
type countedRooms struct {
	admission.Redis
	read atomic.Int64
}

func (c *countedRooms) Room(ctx context.Context, goodsID int64) (admission.State, error) {
	c.read.Add(1)
	return c.Redis.Room(ctx, goodsID)
}

// oneLeaves makes one of two admitted buyers leave, and waits until the next in line is called.
func (h *fixture) oneLeaves(places map[int64]admission.Place) {
	h.t.Helper()
	for b, p := range places {
		p = must.Get(h.newNode().Find(h.t.Context(), h.id, fmt.Sprint(b), p.Ticket))(h.t)
		if p.State == admission.Admitted {
			require.NoError(h.t, h.service.Leave(h.t.Context(), h.id, fmt.Sprint(b)))
			break
		}
	}
	h.eventually(func(s admission.State) bool { return s.Admitted == 3 })
}

// TestAdmitter_LineMovesWithoutMySQL checks that buyers are called although no numbers are granted.
func TestAdmitter_LineMovesWithoutMySQL(t *testing.T) {
	h := open(t, 2, time.Second)
	var places map[int64]admission.Place
	h.admit(time.Hour, func() {
		places = h.joinAll(1, 5)
		h.eventually(func(s admission.State) bool { return s.Called == 2 })
	})
	state := h.state() // fewer numbers are left than an admitter keeps
	require.NoError(t, h.redis.RaiseLimit(t.Context(), h.id, state.Lease, state.Joined+1))
	h.admitWith(withoutGrants{h.store}, h.redis, nil, func() {
		h.oneLeaves(places)
	})
}

// TestAdmitter_LineWithoutBurstMovesAtItsRate checks a sale whose permits do not accumulate: each
// step calls as many buyers as the rate permits, not one.
func TestAdmitter_LineWithoutBurstMovesAtItsRate(t *testing.T) {
	const buyers = 1000
	h := open(t, buyers, time.Second)
	h.change(func(s *seckill.Sale) { s.Rate.MaxBurstSeconds = 0 })
	h.admit(time.Hour, func() {
		h.joinAll(1, buyers)
		h.eventually(func(s admission.State) bool { return s.Called == buyers })
	})
}

// change changes the sale in Redis, as a merchant's change does.
func (h *fixture) change(change func(*seckill.Sale)) {
	h.t.Helper()
	sale := must.Get(h.store.Sale(h.t.Context(), h.id))(h.t)
	change(&sale)
	sale.Version++
	require.NoError(h.t, h.redis.UpdateSale(h.t.Context(), sale))
}

// TestAdmitter_LowerRateHoldsAtOnce checks an admitter whose list of sales is older than a lower
// rate, which the merchant has been answered: it calls nobody at the former rate.
func TestAdmitter_LowerRateHoldsAtOnce(t *testing.T) {
	const buyers = 50
	h := open(t, buyers, time.Second)
	former := func(s *seckill.Sale) { s.Rate = seckill.DefaultRate() }
	h.change(func(s *seckill.Sale) { s.Rate.PermitsPerSecond = 0.01 })
	h.admitWith(h.store, h.redis, former, func() {
		h.joinAll(1, buyers)
		h.eventually(func(s admission.State) bool { return s.Called > 0 })
		first := h.state().Calls
		h.eventually(func(s admission.State) bool { return s.Calls > first+2 })
		require.EqualValues(t, 1, h.state().Called)
	})
}

// slowSaves is a MySQL whose saves end with a channel.
type slowSaves struct {
	admission.Store
	end chan struct{}
}

func (s slowSaves) SaveRoom(context.Context, int64, string, admission.Record) error {
	<-s.end
	return nil
}

// TestAdmitter_LineMovesDuringASave checks that the place of a buyer who leaves is offered to the
// next one while MySQL saves the line.
func TestAdmitter_LineMovesDuringASave(t *testing.T) {
	h := open(t, 2, time.Second)
	slow := slowSaves{h.store, make(chan struct{})}
	h.admitWith(slow, h.redis, nil, func() {
		defer close(slow.end)
		places := h.joinAll(1, 5)
		h.eventually(func(s admission.State) bool { return s.Called == 2 })
		h.oneLeaves(places)
	})
}

// TestAdmitter_EndedLineIsReadRarely checks a sale that ended by Redis' clock, whatever the clock
// of the admitter's host.
func TestAdmitter_EndedLineIsReadRarely(t *testing.T) {
	h := open(t, 2, time.Second)
	counted := &countedRooms{Redis: h.redis}
	h.admitWith(h.store, counted, func(s *seckill.Sale) { s.EndAt = time.Now().Add(-time.Second) },
		func() {
			require.Eventually(t, func() bool { return counted.read.Load() > 0 }, time.Minute,
				time.Millisecond)
			time.Sleep(time.Second)
			require.LessOrEqual(t, counted.read.Load(), int64(2))
		})
}
