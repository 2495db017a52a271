package admission

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"flashsale.dev/seckill/internal/apierror"
	"flashsale.dev/seckill/internal/batcher"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/reservation"
	"flashsale.dev/seckill/internal/ttlcache"
	"flashsale.dev/seckill/internal/waitingroom"
)

const (
	// statusLife is the age from which a node reads a room again.
	statusLife = time.Second
	maxRooms   = 10_000
	// redisDeadline bounds a call that a batch of buyers shares, with its grants.
	redisDeadline = 2 * time.Second
	// maxGrants bounds how often a batch has numbers granted.
	maxGrants = 5
)

// Service serves buyers. It is safe for concurrent use.
type Service struct {
	sales    Sales
	redis    Redis
	store    Store
	tickets  *waitingroom.Tickets
	known    sync.Map // goods id -> *known
	statuses *ttlcache.Cache[int64, *Status]
	visits   *batcher.Batcher[visitKey, Visit, visited]
}

// visitKey groups the visits that one script call decides.
type visitKey struct {
	goodsID int64
	mode    Mode
}

// known is what a node remembers of one room.
type known struct {
	endAt time.Time // of the sale, when the node first read the room
	mu    sync.Mutex
	lastDraw
	gaps lastGaps
	// ended is the last bitmap of Redis.Ended, and left and lease are those of the State for which
	// it was read. They need no lock, because one load of a status runs at a time.
	ended []byte
	left  int64
	lease string
}

// visited is the answer to one visit of a batch. All answers of a batch share the status.
type visited struct {
	Seat
	status *Status
}

// NewService returns a service whose tickets have the given secrets: the first signs, all verify.
func NewService(sales Sales, redis Redis, store Store, secrets [][]byte) *Service {
	s := &Service{
		sales: sales, redis: redis, store: store, tickets: waitingroom.NewTickets(secrets...),
		statuses: ttlcache.New[int64, *Status](ttlcache.Options{
			TTL: statusLife, MaxEntries: maxRooms, LoadTimeout: redisDeadline, Now: time.Now,
		}),
	}
	s.visits = batcher.New(reservation.MaxBatch, s.visitBatch)
	return s
}

// Status returns a room from this node's memory, at most a second old. The error is NotFound if the
// sale has none, or Unavailable.
func (s *Service) Status(ctx context.Context, goodsID int64) (*Status, error) {
	return s.statuses.Get(ctx, goodsID, func(ctx context.Context) (*Status, error) {
		return s.readStatus(ctx, goodsID)
	})
}

func (s *Service) readStatus(ctx context.Context, goodsID int64) (*Status, error) {
	sale, err := s.sales.Sale(ctx, goodsID)
	if err != nil {
		return nil, err
	}
	if sale.Admission != seckill.ByWaitingRoom {
		return nil, apierror.New(apierror.NotFound, "this sale has no waiting room")
	}
	if sale.Phase() == seckill.PhaseEnded {
		s.known.Delete(goodsID)
		return s.endedStatus(ctx, sale)
	}
	state, err := s.redis.Room(ctx, goodsID)
	if err == nil {
		state, err = s.ready(ctx, goodsID, state)
	}
	if err != nil {
		return nil, unavailable(err)
	}
	status, err := s.newStatus(sale, state)
	if err == nil {
		err = s.readEnded(ctx, status)
	}
	return status, err
}

// ready makes a room ready if it is not. A worker notices an exposure some moments later, and
// buyers do not wait for it. No worker serves the room of a closed sale.
func (s *Service) ready(ctx context.Context, goodsID int64, state State) (_ State, err error) {
	if state.Gate == seckill.GateOpen && !state.Ready() {
		state, err = prepare(ctx, s.store, s.redis, goodsID, state)
	}
	if err == nil && !state.Ready() {
		err = errNotReady
	}
	return state, err
}

// readEnded reads the bitmap of the numbers that wait no more, unless Left is the same as when this
// node read it last.
func (s *Service) readEnded(ctx context.Context, status *Status) error {
	k := s.knownOf(status.Sale)
	if k.left != status.Left || k.lease != status.Lease {
		ended, err := s.redis.Ended(ctx, status.Sale.GoodsID)
		if err != nil {
			return unavailable(err)
		}
		k.ended, k.left, k.lease = ended, status.Left, status.Lease
	}
	status.ended = k.ended
	return nil
}

// knownOf returns what this node remembers of a room. A new room makes it forget those of the sales
// that have ended: nobody may ask for the last status of a sale.
func (s *Service) knownOf(sale seckill.View) *known {
	k, found := s.known.LoadOrStore(sale.GoodsID, &known{endAt: sale.EndAt})
	if !found {
		s.known.Range(func(goodsID, other any) bool {
			if !sale.Now.Before(other.(*known).endAt) {
				s.known.Delete(goodsID)
			}
			return true
		})
	}
	return k.(*known)
}

// endedStatus is the status of a sale that has ended. MySQL keeps its draw for everybody who checks
// it later; Redis forgets the room.
func (s *Service) endedStatus(ctx context.Context, sale seckill.View) (*Status, error) {
	kept, err := s.store.WaitingRoom(ctx, sale.GoodsID)
	if err != nil {
		return nil, unavailable(err)
	}
	seed, err := waitingroom.ParseSeed(kept.Seed)
	if err != nil {
		return nil, err
	}
	state := State{
		Now: sale.Now, Joined: kept.Joined, Admitted: kept.Admitted, DrawSize: NotDrawn,
		Commitment: seed.Commitment(),
	}
	if kept.DrawSize != NotDrawn {
		state.Seed, state.Digest, state.DrawSize = kept.Seed, kept.Digest, kept.DrawSize
	}
	status := &Status{Sale: sale, State: state}
	if len(kept.Gaps) > 0 {
		draw, err := new(lastDraw).of(state)
		if err != nil {
			return nil, err
		}
		status.gaps = positionsOf(kept.Gaps, draw)
	}
	return status, nil
}

// newStatus returns the status of a state.
func (s *Service) newStatus(sale seckill.View, state State) (*Status, error) {
	k := s.knownOf(sale)
	k.mu.Lock()
	defer k.mu.Unlock()
	draw, err := k.of(state)
	status := &Status{State: state, Sale: sale, draw: draw}
	status.Gaps, status.gaps = k.gaps.of(state, draw)
	return status, err
}

// Join returns the place of a buyer, who gets one at the end of the line unless the buyer has one
// or shows a ticket. ticket may be empty. A room that is over has no new places: the error is then
// the sale's refusal. It is LimitReached for a buyer who may buy no more.
func (s *Service) Join(
	ctx context.Context, goodsID int64, buyerID, ticket string,
) (Place, error) {
	status, err := s.Status(ctx, goodsID)
	if err != nil {
		return Place{}, err
	}
	if status.Phase() == waitingroom.PhaseOver {
		p, err := s.Find(ctx, goodsID, buyerID, ticket)
		if apierror.ReasonOf(err) == apierror.NotFound {
			err = status.refusal()
		}
		return p, err
	}
	return s.placeOf(ctx, goodsID, Join, s.newVisit(status, buyerID, ticket))
}

// Find returns the place of a buyer; the error is NotFound without one. A place whose ticket is
// shown, and which was not called, is computed from this node's memory.
func (s *Service) Find(
	ctx context.Context, goodsID int64, buyerID, ticket string,
) (Place, error) {
	status, err := s.Status(ctx, goodsID)
	if err != nil {
		return Place{}, err
	}
	v := s.newVisit(status, buyerID, ticket)
	waits := v.Ticket > 0 && v.Ticket <= status.Joined && !status.inGap(v.Ticket) &&
		!status.hasEnded(v.Ticket)
	if waits && (status.Phase() == waitingroom.PhaseOver || !status.called(v.Position)) {
		p := status.place(Seat{Number: v.Ticket})
		p.Ticket = ticket
		return p, nil
	}
	return s.placeOf(ctx, goodsID, Find, v)
}

// placeOf visits a room. After a loss, Redis may not know that a number has passed, nor that its
// buyer has a later one. Such a number ends, and the ticket restores the later one, which may have
// passed too. Of concurrent calls for a buyer one ends the number, and all return the same place.
func (s *Service) placeOf(ctx context.Context, goodsID int64, mode Mode, v Visit) (Place, error) {
	const numbers = 2 // the one that Redis has, and that of the ticket
	for ended := 0; ; ended++ {
		p, err := s.visit(ctx, goodsID, mode, v)
		if err != nil || p.State != Missed || ended == numbers ||
			mode == Find && v.Ticket <= p.Number {
			return p, err
		}
		passed := Visit{BuyerID: v.BuyerID, Ticket: p.Number, Position: p.Position}
		if err := s.leave(ctx, goodsID, passed); err != nil {
			return Place{}, err
		}
	}
}

// Leave removes the place of a buyer. A buyer without one may leave too.
func (s *Service) Leave(ctx context.Context, goodsID int64, buyerID string) error {
	if _, err := s.Status(ctx, goodsID); err != nil {
		return err
	}
	return s.leave(ctx, goodsID, Visit{BuyerID: buyerID})
}

// leave removes the place of a buyer, or only that of the visit's number.
func (s *Service) leave(ctx context.Context, goodsID int64, v Visit) error {
	_, err := s.visits.Do(ctx, visitKey{goodsID, Leave}, v)
	return unavailable(err)
}

// Require returns nil if a buyer is admitted to a sale that has a waiting room. Otherwise it
// returns Waiting with the buyer's position, or the refusal of a room that is over.
func (s *Service) Require(ctx context.Context, goodsID int64, buyerID string) error {
	status, err := s.Status(ctx, goodsID)
	if err != nil {
		return err
	}
	over := status.Phase() == waitingroom.PhaseOver
	if over && !status.Over {
		return status.refusal() // the sale has ended
	}
	// The status may be a second old. A unit that has returned since then may be this buyer's.
	p, err := s.visit(ctx, goodsID, Find, Visit{BuyerID: buyerID})
	switch {
	case p.State == PlaceOver, over && apierror.ReasonOf(err) == apierror.NotFound:
		return status.refusal()
	case apierror.ReasonOf(err) == apierror.NotFound:
		return seckill.NewWaiting()
	case err != nil || p.State == Admitted:
		return err
	}
	e := seckill.NewWaiting()
	if p.Position > 0 {
		// A turn may come before its ETA: units return together, and buyers ahead leave.
		e.RetryAfter = max(time.Second, min(p.ETA, status.Life/2, time.Minute))
		e = e.With("position", p.Position)
	}
	return e
}

// newVisit returns the visit of a buyer. A ticket that is not the buyer's own counts as none.
func (s *Service) newVisit(status *Status, buyerID, ticket string) Visit {
	v := Visit{BuyerID: buyerID}
	if number, err := s.tickets.Number(ticket, status.Sale.GoodsID, buyerID); err == nil {
		v.Ticket, v.Position = number, status.position(number)
	}
	return v
}

// visit asks Redis together with other buyers.
func (s *Service) visit(ctx context.Context, goodsID int64, mode Mode, v Visit) (Place, error) {
	got, err := s.visits.Do(ctx, visitKey{goodsID, mode}, v)
	if err != nil {
		return Place{}, unavailable(err)
	}
	switch got.Mark {
	case Unknown:
		return Place{}, apierror.New(apierror.NotFound, "you have no place in this line")
	case Exhausted:
		return Place{}, unavailable(errors.New("no number was granted"))
	case OverLimit:
		return Place{}, apierror.New(apierror.LimitReached,
			"you have as many as one buyer may have").With("orderSns", got.OrderSns)
	}
	p := got.status.place(got.Seat)
	p.Ticket = s.tickets.Sign(goodsID, v.BuyerID, p.Number)
	return p, nil
}

// visitBatch decides the visits of a batch in one script call. Where the granted numbers end, it
// has more granted and asks again: the buyers who have a number get the same one.
func (s *Service) visitBatch(
	ctx context.Context, key visitKey, visits []Visit,
) ([]visited, error) {
	ctx, cancel := context.WithTimeout(ctx, redisDeadline)
	defer cancel()
	sale, err := s.sales.Sale(ctx, key.goodsID)
	if err != nil {
		return nil, err
	}
	if sale.Retired { // Redis has forgotten the room for good
		return slices.Repeat([]visited{{Seat: Seat{Mark: Unknown}}}, len(visits)), nil
	}
	for grants := 0; ; grants++ {
		state, seats, err := s.redis.Join(ctx, key.goodsID, key.mode, visits)
		if err == nil && !state.Ready() {
			if _, err = s.ready(ctx, key.goodsID, state); err == nil {
				continue
			}
		}
		if err != nil {
			return nil, err
		}
		status, err := s.newStatus(sale, state)
		switch {
		case err != nil:
			return nil, err
		case status.addPositions(visits):
			continue
		case state.Joined < state.Granted || key.mode != Join || grants == maxGrants:
			return answers(status, seats), nil
		}
		if err := grant(ctx, s.store, s.redis, key.goodsID, state); err != nil {
			return nil, err
		}
	}
}

// addPositions adds the positions that visits lack because the draw was made since. It reports
// whether there are any.
func (s *Status) addPositions(visits []Visit) (added bool) {
	for i, v := range visits {
		if v.Ticket > 0 && v.Position == 0 && s.draw != nil {
			visits[i].Position, added = s.draw.Position(v.Ticket), true
		}
	}
	return added
}

func answers(status *Status, seats []Seat) []visited {
	list := make([]visited, len(seats))
	for i, seat := range seats {
		list[i] = visited{seat, status}
	}
	return list
}

// errNotReady means that the gate of the room's sale is not open, as during a rebuild. It also
// means that MySQL has granted the numbers to another master since.
var errNotReady = errors.New("the room is not ready")

func unavailable(err error) error {
	return apierror.OrUnavailable(err, "the waiting room can't be asked")
}

// refusal is the error of a room that is over.
func (s *Status) refusal() error {
	if err := s.Sale.CheckSelling(s.Now, 1); err != nil {
		return err
	}
	return seckill.NewSoldOut(0)
}
