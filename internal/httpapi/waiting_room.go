package httpapi

import (
	"context"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json"

	"flashsale.dev/seckill/internal/apierror"
	"flashsale.dev/seckill/internal/waitingroom"
	"flashsale.dev/seckill/internal/waitingroom/admission"
)

// roomResponse is a waiting room, the same for everybody. The draw's values are public from the
// start of the sale on, so that anybody can recompute a position.
type roomResponse struct {
	Phase         waitingroom.Phase `json:"phase"`
	Joined        int64             `json:"joined"`   // last number
	Admitted      int64             `json:"admitted"` // last position that was called
	RatePerSecond float64           `json:"ratePerSecond"`
	// AdmissionSeconds is how long an admission lasts; absent before the admitter's first step.
	AdmissionSeconds float64   `json:"admissionSeconds,omitzero"`
	Available        int64     `json:"available"`
	Held             int64     `json:"held"` // units of orders that are not paid
	HeldUntil        timestamp `json:"heldUntil,omitzero"`
	DrawCommitment   string    `json:"drawCommitment"`
	DrawSeed         string    `json:"drawSeed,omitempty"`
	DrawDigest       string    `json:"drawDigest,omitempty"`
	DrawSize         *int64    `json:"drawSize,omitempty"`
	ServerTime       timestamp `json:"serverTime"`
}

func newRoomResponse(s *admission.Status) roomResponse {
	r := roomResponse{
		Phase: s.Phase(), Joined: s.Joined, Admitted: s.Admitted,
		RatePerSecond: s.Sale.Rate.PermitsPerSecond, Available: s.Available, Held: s.Held.Units,
		AdmissionSeconds: s.Life.Seconds(),
		HeldUntil:        timestamp(s.Held.Until), DrawCommitment: s.Commitment,
		ServerTime: timestamp(s.Now),
	}
	if s.Seed != "" {
		r.DrawSeed, r.DrawDigest, r.DrawSize = s.Seed, s.Digest, &s.DrawSize
	}
	return r
}

// roomPage is the encoded status of a room. Everybody who waits polls it.
type roomPage struct {
	data encoded
	etag string
}

// encoded is data that is JSON already.
type encoded []byte

func (e encoded) appendJSON(b []byte) ([]byte, error) { return append(b, e...), nil }

// showRoom is GET /sales/{goodsId}/waiting-room.
func (a *api) showRoom(ctx context.Context, r *request) (response, error) {
	id, err := a.exposedGoodsID(ctx, r)
	if err != nil {
		return response{}, err
	}
	s, err := a.Rooms.Status(ctx, id)
	if err != nil {
		return response{}, err
	}
	page, err := pageOf(s)
	if err != nil {
		return response{}, err
	}
	return response{reason: reasonOK, data: page.data, public: true, etag: page.etag}, nil
}

// pageOf returns the page of a status, which it encodes once.
func pageOf(s *admission.Status) (*roomPage, error) {
	if page, ok := s.Page.Load().(*roomPage); ok {
		return page, nil
	}
	shown := newRoomResponse(s)
	data, err := json.Marshal(shown)
	if err != nil {
		return nil, err
	}
	shown.ServerTime = timestamp{} // the Date header has it too
	unchanging, err := json.Marshal(shown)
	if err != nil {
		return nil, err
	}
	page := &roomPage{data: data, etag: weakTag(unchanging)}
	s.Page.Store(page)
	return page, nil
}

// placeResponse is a buyer's own place. There is no position before the draw.
type placeResponse struct {
	Ticket        string             `json:"ticket"`
	Number        int64              `json:"number"`
	Position      int64              `json:"position,omitzero"`
	Ahead         int64              `json:"ahead"`
	ETASeconds    int64              `json:"etaSeconds"`
	State         admission.Progress `json:"state"`
	AdmittedUntil timestamp          `json:"admittedUntil,omitzero"`
}

func newPlaceResponse(p admission.Place) placeResponse {
	return placeResponse{
		Ticket: p.Ticket, Number: p.Number, Position: p.Position, Ahead: p.Ahead,
		ETASeconds: int64((p.ETA + time.Second - 1) / time.Second), State: p.State,
		AdmittedUntil: timestamp(p.Until),
	}
}

const maxTicket = 200 // characters

// withRoom returns the handler of a step of a buyer in a waiting room.
func (a *api) withRoom(
	step func(ctx context.Context, goodsID int64, buyerID string, ticket string) (response, error),
) handleFunc {
	return func(ctx context.Context, r *request) (response, error) {
		ticket := textOr(r.Fields, "ticket")
		if utf8.RuneCountInString(ticket) > maxTicket {
			r.Reject("ticket", "must have at most %d characters", maxTicket)
		}
		id, err := a.exposedGoodsID(ctx, r)
		if err != nil {
			return response{}, err
		}
		return step(ctx, id, r.actor.ID, ticket)
	}
}

// joinRoom is POST /sales/{goodsId}/waiting-room. A buyer without the sale's access code gets no
// place, because the line could not sell to that buyer. A room that is over has no new places, so
// it claims no code.
func (a *api) joinRoom(ctx context.Context, r *request) (response, error) {
	text := textOr(r.Fields, "code") // withRoom returns its error
	return a.withRoom(func(
		ctx context.Context, goodsID int64, buyerID string, ticket string,
	) (response, error) {
		room, err := a.Rooms.Status(ctx, goodsID)
		if err != nil {
			return response{}, err
		}
		code, err := a.Codes.Verify(room.Sale, text)
		if err == nil && room.Phase() != waitingroom.PhaseOver {
			err = a.Codes.Claim(ctx, room.Sale, code, buyerID)
		}
		if err != nil {
			return response{}, err
		}
		p, err := a.Rooms.Join(ctx, goodsID, buyerID, ticket)
		return ok(newPlaceResponse(p)), err
	})(ctx, r)
}

// myPlace is GET /sales/{goodsId}/waiting-room/me.
func (a *api) myPlace(
	ctx context.Context, goodsID int64, buyerID string, ticket string,
) (response, error) {
	p, err := a.Rooms.Find(ctx, goodsID, buyerID, ticket)
	return ok(newPlaceResponse(p)), err
}

// leaveRoom is DELETE /sales/{goodsId}/waiting-room/me.
func (a *api) leaveRoom(
	ctx context.Context, goodsID int64, buyerID string, _ string,
) (response, error) {
	return ok(nil), a.Rooms.Leave(ctx, goodsID, buyerID)
}

// placeInterval is the time between two readings of a place. A room in memory is at most as old.
const placeInterval = time.Second

// placeEvents is GET /sales/{goodsId}/waiting-room/me/events: the place at once and whenever it
// changes.
func (a *api) placeEvents(ctx context.Context, r *request) (response, error) {
	first, err := a.withRoom(a.myPlace)(ctx, r)
	if err != nil {
		return response{}, err
	}
	return a.stream(r, func(ctx context.Context, s eventStream) {
		if s.start() {
			s.sendPlaces(ctx, r.ID("goodsId"), r.actor.ID, first.data.(placeResponse))
		}
	})
}

// sendPlaces sends each change of a place until the place ends, the client leaves or the node
// stops. A place that cannot be read for a moment is read again.
func (s eventStream) sendPlaces(
	ctx context.Context, goodsID int64, buyerID string, place placeResponse,
) {
	interval := time.NewTicker(placeInterval)
	defer interval.Stop()
	for sent, at := (placeResponse{}), time.Now(); ; {
		switch {
		case place != sent:
			data, err := json.Marshal(place)
			if err != nil || !s.write("event: place\ndata: "+string(data)+"\n\n") {
				return
			}
			sent, at = place, time.Now()
		case time.Since(at) >= heartbeat:
			if !s.write(": still here\n\n") {
				return
			}
			at = time.Now()
		}
		select {
		case <-interval.C:
		case <-ctx.Done():
			return
		case <-s.Notifier.Done():
			return
		}
		reading, cancel := context.WithTimeout(ctx, refreshTimeout)
		p, err := s.Rooms.Find(reading, goodsID, buyerID, sent.Ticket)
		cancel()
		switch {
		case err == nil:
			place = newPlaceResponse(p)
		case apierror.ReasonOf(err) == apierror.NotFound:
			return // the buyer has left, or has bought
		}
	}
}
