package admission

import (
	"context"
	"fmt"

	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/waitingroom"
)

// Redis has the rooms. Join and Admit change nothing where the room is not ready.
type Redis interface {
	// Room reads the state of a room. It also fixes the size of the draw if the sale has started.
	Room(ctx context.Context, goodsID int64) (State, error)
	// Join finds, hands out or removes the numbers of buyers. There are no seats where the room is
	// not ready. The state has no Details.
	Join(ctx context.Context, goodsID int64, mode Mode, visits []Visit) (State, []Seat, error)
	// RaiseLimit lets the room of a lease hand out the numbers up to a limit.
	RaiseLimit(ctx context.Context, goodsID int64, lease string, limit int64) error
	// Prepare makes a room ready for the lease of a record.
	Prepare(ctx context.Context, goodsID int64, r Record, commitment string) (State, error)
	// SetSeed publishes the seed of the room of a lease.
	SetSeed(ctx context.Context, goodsID int64, lease, seed string) error
	// SetHeld publishes what may return to the room of a lease, and whether the room is over.
	SetHeld(ctx context.Context, goodsID int64, lease string, held Held, over bool) error
	// Admit calls the next in line as far as the stock and the rate permit.
	Admit(ctx context.Context, goodsID int64, c Call) (State, error)
	// Ended returns the bitmap of the numbers that wait no more.
	Ended(ctx context.Context, goodsID int64) ([]byte, error)
	// Turns lists the admissions that are neither used nor over, with what was left of each at the
	// moment of a state.
	Turns(ctx context.Context, goodsID int64, s State) ([]Turn, error)
}

// Store keeps in MySQL what must survive the loss of Redis.
type Store interface {
	// GrantNumbers grants a lease further numbers, unless its limit is above the given one already.
	GrantNumbers(ctx context.Context, goodsID int64, g Grant) (Record, error)
	// Draw fixes the draw of a room, once.
	Draw(
		ctx context.Context, goodsID int64, lease string, size int64, digest string,
	) (Record, error)
	// SaveRoom saves the progress of the room of a lease.
	SaveRoom(ctx context.Context, goodsID int64, lease string, now Record) error
	// WaitingRoom reads the record of a room.
	WaitingRoom(ctx context.Context, goodsID int64) (Record, error)
	// HeldUnits returns the units that may return to a sale.
	HeldUnits(ctx context.Context, goodsID int64) (Held, error)
}

// Sales reads sales; catalog.Catalog implements it.
type Sales interface {
	Sale(ctx context.Context, goodsID int64) (seckill.View, error)
}

// grantSize is how many numbers MySQL grants at a time. After a loss of Redis the gap has the
// numbers that were granted and that no save has as joined.
const grantSize = 10_000

// grant asks MySQL for further numbers for the room of a state, and lets Redis hand them out.
func grant(ctx context.Context, store Store, redis Redis, goodsID int64, state State) error {
	record, err := store.GrantNumbers(ctx, goodsID, Grant{
		Lease: state.Lease, Joined: state.Joined, Above: state.Granted, Numbers: grantSize,
	})
	if err != nil || record.Lease != state.Lease {
		return err
	}
	return redis.RaiseLimit(ctx, goodsID, state.Lease, record.Limit)
}

// prepare makes a room ready in Redis after the sale was loaded there.
func prepare(
	ctx context.Context, store Store, redis Redis, goodsID int64, state State,
) (State, error) {
	g := Grant{Lease: state.SaleLease, Joined: state.Joined, Numbers: grantSize}
	if state.intact() {
		g.Replaces = state.Lease
	}
	record, err := store.GrantNumbers(ctx, goodsID, g)
	if err != nil {
		return state, err
	}
	seed, err := waitingroom.ParseSeed(record.Seed)
	if err != nil {
		return state, fmt.Errorf("read the seed of a waiting room: %w", err)
	}
	return redis.Prepare(ctx, goodsID, record, seed.Commitment())
}
