package admission

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/apierror"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/waitingroom"
)

// rooms are sales that each begin and end within an hour of their own, with a room in Redis.
type rooms struct {
	Redis
	now time.Time
}

func (r *rooms) Sale(_ context.Context, goodsID int64) (seckill.View, error) {
	return seckill.View{Now: r.now, Available: 1, Sale: seckill.Sale{
		GoodsID: goodsID, Status: seckill.Exposed, Admission: seckill.ByWaitingRoom,
		StartAt: r.now, EndAt: r.now.Add(time.Minute),
	}}, nil
}

func (r *rooms) Room(context.Context, int64) (State, error) {
	return State{Lease: "a/1", SaleLease: "a/1", DrawSize: NotDrawn, Now: r.now}, nil
}

func (*rooms) Ended(context.Context, int64) ([]byte, error) { return make([]byte, 100), nil }

// TestService_ForgetsEndedRooms checks that a node does not remember every room that it has ever
// read. Nobody asks for a room after the end of its sale.
func TestService_ForgetsEndedRooms(t *testing.T) {
	r := &rooms{now: time.Now()}
	s := NewService(r, r, nil, [][]byte{[]byte("a secret of the tests, 32 bytes.")})
	for goodsID := range int64(50) {
		r.now = r.now.Add(time.Hour)
		_, err := s.Status(t.Context(), goodsID+1)
		require.NoError(t, err)
	}
	n := 0
	s.known.Range(func(any, any) bool { n++; return true })
	require.Equal(t, 1, n)
}

// TestStatus_ETAOfDistantStart checks a line whose start is further away than a duration can say.
func TestStatus_ETAOfDistantStart(t *testing.T) {
	now := time.Now()
	draw := waitingroom.NewDraw(waitingroom.NewSeed(), nil, 1)
	s := &Status{State: State{Now: now}, draw: draw, Sale: seckill.View{Sale: seckill.Sale{
		Status: seckill.Exposed, Rate: seckill.DefaultRate(),
		StartAt: now.AddDate(400, 0, 0), EndAt: now.AddDate(401, 0, 0),
	}}}
	require.Greater(t, s.place(Seat{Number: 1}).ETA, 50*365*24*time.Hour)
}

// slowRoom is a drawn line of 1000 buyers, of whom one is called each second.
type slowRoom struct{ rooms }

func (r *slowRoom) Sale(ctx context.Context, goodsID int64) (seckill.View, error) {
	v, err := r.rooms.Sale(ctx, goodsID)
	v.Rate.PermitsPerSecond = 1
	return v, err
}

func (r *slowRoom) Room(context.Context, int64) (State, error) {
	return State{
		Lease: "a/1", SaleLease: "a/1", Now: r.now, Joined: 1000, DrawSize: 1000,
		Seed: waitingroom.Seed{}.Hex(), Commitment: waitingroom.Seed{}.Commitment(),
		Details: Details{Life: 30 * time.Second},
	}, nil
}

func (r *slowRoom) Join(context.Context, int64, Mode, []Visit) (State, []Seat, error) {
	state, err := r.Room(context.Background(), 1)
	state.Details = Details{}
	last := waitingroom.NewDraw(waitingroom.Seed{}, nil, 1000).Number(1000)
	return state, []Seat{{Number: last}}, err
}

// TestService_RetryAfterIsWithinATurn checks that a buyer who obeys Retry-After cannot miss a whole
// turn: units may return together, and buyers ahead leave, so a turn may come before its ETA.
func TestService_RetryAfterIsWithinATurn(t *testing.T) {
	r := &slowRoom{rooms{now: time.Now()}}
	s := NewService(r, r, nil, [][]byte{[]byte("a secret of the tests, 32 bytes.")})
	err, waits := errors.AsType[*apierror.Error](s.Require(t.Context(), 1, "1"))
	require.True(t, waits)
	require.Equal(t, []any{apierror.Waiting, 15 * time.Second}, []any{err.Reason, err.RetryAfter})
}

// returnedUnit is a room that was over when a node read its status. A unit has returned since, and
// one buyer is admitted.
type returnedUnit struct{ rooms }

func (r *returnedUnit) Room(ctx context.Context, goodsID int64) (State, error) {
	state, err := r.rooms.Room(ctx, goodsID)
	state.Over = true
	return state, err
}

func (r *returnedUnit) Join(
	ctx context.Context, goodsID int64, _ Mode, visits []Visit,
) (State, []Seat, error) {
	state, err := r.rooms.Room(ctx, goodsID)
	seats := make([]Seat, len(visits))
	for i, v := range visits {
		if seats[i].Mark = Unknown; v.BuyerID == "1" {
			seats[i] = Seat{Number: 1, Until: r.now.Add(time.Minute)}
		}
	}
	return state, seats, err
}

// TestService_OldStatusRefusesNoAdmittedBuyer checks that a node which still has the room as over
// refuses only buyers who are not admitted.
func TestService_OldStatusRefusesNoAdmittedBuyer(t *testing.T) {
	r := &returnedUnit{rooms{now: time.Now()}}
	s := NewService(r, r, nil, [][]byte{[]byte("a secret of the tests, 32 bytes.")})
	require.NoError(t, s.Require(t.Context(), 1, "1"))
	require.Equal(t, apierror.SoldOut, apierror.ReasonOf(s.Require(t.Context(), 1, "2")))
}
