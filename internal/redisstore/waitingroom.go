package redisstore

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"flashsale.dev/seckill/internal/waitingroom/admission"
)

// roomBuckets is how many hashes keep the numbers of a sale's buyers. A million buyers make hashes
// of some 60 entries, which Redis keeps as compact lists: about 20 bytes a buyer. No release may
// change the number, because rooms that are open have it.
const roomBuckets = 1 << 14

// longID is the greatest length of a buyer's id that is stored as it is. A longer id is stored as a
// hash.
const longID = 20

// fieldOf returns the field of a buyer in a bucket: the id, or 96 bits of its hash, because a long
// id such as a UUID would take three times the memory. Two of some 2^48 ids have the same hash, and
// such buyers would only share a place. The zero byte distinguishes a hash from a short id.
func fieldOf(buyer string) string {
	if len(buyer) <= longID {
		return buyer
	}
	sum := sha256.Sum256([]byte(buyer))
	return "\x00" + string(sum[:12])
}

// bucketOf returns the bucket of a buyer.
func bucketOf(buyer string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(buyer)) // never fails
	return h.Sum32() % roomBuckets
}

func (k keys) ofRoom() []string {
	return []string{k.sale(), k.room(), k.turns(), k.done(), k.gap(), k.late()}
}

// Join finds, hands out or removes the numbers of up to reservation.MaxBatch buyers of one sale.
// There are no seats where the room is not ready. The state has what a place needs, and no details.
func (s *Store) Join(
	ctx context.Context, goodsID int64, mode admission.Mode, visits []admission.Visit,
) (admission.State, []admission.Seat, error) {
	keys, args := joinArguments(keysOf(goodsID), s.opts.Lease, mode, visits)
	r, state, err := s.runRoom(ctx, s.join, "join a waiting room", keys, args)
	if err != nil || !state.Ready() {
		return state, nil, err
	}
	seats := make([]admission.Seat, len(visits))
	for i := range seats {
		if r.next == len(r.fields) && i == 0 { // all are new
			return state, newSeats(seats, state.Joined), nil
		}
		seats[i] = r.seat()
	}
	return state, seats, r.err
}

// joinArguments returns the keys and the arguments of the join script. It leaves out what no visit
// of the group needs, because each argument costs Redis as much as a part of the work.
func joinArguments(
	k keys, lease string, mode admission.Mode, visits []admission.Visit,
) (keys []string, args []any) {
	stride, fields := 1, make([]string, len(visits))
	for i, v := range visits {
		if fields[i] = fieldOf(v.BuyerID); fields[i] != v.BuyerID {
			stride = max(stride, 2)
		}
		if v.Ticket != 0 {
			stride = 4
		}
	}
	keys = append(make([]string, 0, 8+len(visits)), k.ofRoom()...)
	keys = append(keys, k.buyers(), k.used())
	args = append(make([]any, 0, 3+stride*len(visits)), lease, int(mode), stride)
	for i, v := range visits {
		keys = append(keys, k.bucket(bucketOf(v.BuyerID)))
		all := [4]any{v.BuyerID, fields[i], orEmpty(v.Ticket), orEmpty(v.Position)}
		args = append(args, all[:stride]...)
	}
	return keys, args
}

// newSeats assigns buyers the numbers up to the last one.
func newSeats(seats []admission.Seat, last int64) []admission.Seat {
	for i := range seats {
		seats[i].Number = last - int64(len(seats)-1-i)
	}
	return seats
}

// seat reads a buyer's part of the answer of join: a number, or a list that begins with it.
func (r *reply) seat() admission.Seat {
	list, isList := r.peek().([]any)
	if !isList {
		return admission.Seat{Number: r.int()}
	}
	r.next++
	own := &reply{fields: list}
	seat := admission.Seat{
		Number: own.int(), Until: own.optionalMillis(), Mark: admission.Mark(own.int()),
	}
	if seat.Mark == admission.OverLimit {
		seat.OrderSns = strings.Fields(own.string())
	}
	r.err = errors.Join(r.err, own.err)
	return seat
}

// Room reads the state of a room, with details.
func (s *Store) Room(ctx context.Context, goodsID int64) (admission.State, error) {
	keys, args := joinArguments(keysOf(goodsID), s.opts.Lease, admission.Find, nil)
	return s.runDetailed(ctx, s.join, "read a waiting room", keys, args)
}

// Admit ends the admissions whose time is over, and calls the next in line as far as the stock and
// the rate permit. It returns the state afterwards.
func (s *Store) Admit(
	ctx context.Context, goodsID int64, c admission.Call,
) (admission.State, error) {
	args := append(make([]any, 0, 3+len(c.Numbers)), s.opts.Lease, c.Admitted,
		c.Life.Milliseconds())
	for _, n := range c.Numbers {
		args = append(args, n)
	}
	return s.runDetailed(ctx, s.admit, "call the next in line", keysOf(goodsID).ofRoom(), args)
}

// Prepare makes a room ready with what MySQL has of it, after MySQL granted numbers to the lease of
// the record. It changes nothing on another master, or if the room is ready.
func (s *Store) Prepare(
	ctx context.Context, goodsID int64, r admission.Record, commitment string,
) (admission.State, error) {
	gaps, err := json.Marshal(append([]admission.Gap{}, r.Gaps...))
	if err != nil {
		return admission.State{}, fmt.Errorf("encode the gaps of a waiting room: %w", err)
	}
	seed := r.Seed
	if r.DrawSize == admission.NotDrawn {
		seed = ""
	}
	args := append(make([]any, 0, 11+len(r.Turns)), s.opts.Lease, r.Lease, r.Joined, r.Limit,
		r.Admitted, r.DrawSize, r.Digest, seed, commitment, gaps, r.Calls)
	for _, turn := range r.Turns {
		args = append(args, turn)
	}
	return s.runDetailed(ctx, s.prepare, "prepare a waiting room", keysOf(goodsID).ofRoom(), args)
}

// RaiseLimit lets a room hand out the numbers up to a limit. Like SetSeed and SetHeld, it changes
// nothing if the room has another lease.
func (s *Store) RaiseLimit(ctx context.Context, goodsID int64, lease string, limit int64) error {
	return s.setRoom(ctx, goodsID, lease, "limit", limit)
}

// SetSeed publishes the seed of a room.
func (s *Store) SetSeed(ctx context.Context, goodsID int64, lease, seed string) error {
	return s.setRoom(ctx, goodsID, lease, "seed", seed)
}

// SetHeld publishes the units that may return, and whether the room is over.
func (s *Store) SetHeld(
	ctx context.Context, goodsID int64, lease string, held admission.Held, over bool,
) error {
	back := int64(0)
	if !held.Until.IsZero() {
		back = held.Until.UnixMilli()
	}
	return s.setRoom(ctx, goodsID, lease, "held", held.Units, "back", back, "over", over)
}

func (s *Store) setRoom(ctx context.Context, goodsID int64, lease string, fields ...any) error {
	err := s.roomSet.Run(ctx, s.client, []string{keysOf(goodsID).room()},
		append([]any{lease}, fields...)...).Err()
	if err != nil {
		return fmt.Errorf("change a waiting room in redis: %w", err)
	}
	return nil
}

// Turns lists the admissions that are neither used nor over, with what was left of each at the
// moment of a state. It returns an error if Redis has lost that state, or has an older one: its
// admissions are then not those of the state.
func (s *Store) Turns(
	ctx context.Context, goodsID int64, state admission.State,
) ([]admission.Turn, error) {
	keys, read := keysOf(goodsID), s.client.TxPipeline()
	room := read.HMGet(ctx, keys.room(), "lease", "calls")
	found := read.ZRangeWithScores(ctx, keys.turns(), 0, -1)
	if _, err := read.Exec(ctx); err != nil {
		return nil, fmt.Errorf("list admissions in redis: %w", err)
	}
	var now struct {
		Lease string `redis:"lease"`
		Calls int64  `redis:"calls"`
	}
	if err := room.Scan(&now); err != nil {
		return nil, fmt.Errorf("list admissions in redis: %w", err)
	}
	if now.Lease != state.Lease || now.Calls < state.Calls {
		return nil, fmt.Errorf("the room of lease %s, call %d, is gone from redis (now %q, call %d)",
			state.Lease, state.Calls, now.Lease, now.Calls)
	}
	turns := make([]admission.Turn, len(found.Val()))
	for i, z := range found.Val() {
		// Redis' clock may have been set since the state was read.
		rest := min(max(0, int64(z.Score)-state.Now.UnixMilli()), state.Life.Milliseconds())
		turns[i] = fmt.Sprintf("%s %d", z.Member, rest)
	}
	return turns, nil
}

// Ended returns the bitmap of the numbers that wait no more: bit n of byte n/8, the highest bit
// first.
func (s *Store) Ended(ctx context.Context, goodsID int64) ([]byte, error) {
	bits, err := s.client.Get(ctx, keysOf(goodsID).done()).Bytes()
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, fmt.Errorf("read the numbers that left a waiting room: %w", err)
	}
	return bits, nil
}

// runRoom runs a script that begins its answer with the state of a room.
func (s *Store) runRoom(
	ctx context.Context, script *redis.Script, op string, keys []string, args []any,
) (*reply, admission.State, error) {
	fields, err := script.Run(ctx, s.client, keys, args...).Slice()
	if err != nil {
		return nil, admission.State{}, fmt.Errorf("%s in redis: %w", op, err)
	}
	r := &reply{fields: fields}
	var state admission.State
	state.Gate, _ = r.gate() // the leases have the epoch
	state.Now = r.millis()
	state.SaleLease, state.Lease = r.string(), r.string()
	state.Available, state.Pending = r.int(), r.int()
	state.Joined, state.Granted, state.Admitted = r.int(), r.int(), r.int()
	state.DrawSize = r.int()
	state.Digest, state.Seed, state.Commitment = r.string(), r.string(), r.string()
	state.Over = r.int() == 1
	return r, state, r.err
}

// runDetailed runs a script that answers with the state of a room and its details.
func (s *Store) runDetailed(
	ctx context.Context, script *redis.Script, op string, keys []string, args []any,
) (admission.State, error) {
	r, state, err := s.runRoom(ctx, script, op, keys, args)
	if err != nil {
		return state, err
	}
	state.Called, state.Missed = r.int(), r.int()
	if text := r.string(); r.err == nil {
		if err := json.Unmarshal([]byte(text), &state.Gaps); err != nil {
			r.fail("has gaps that can't be read: %w", err)
		}
	}
	state.Held = admission.Held{Units: r.int(), Until: r.optionalMillis()}
	state.Left, state.Life = r.int(), time.Duration(r.int())*time.Millisecond
	state.Calls = r.int()
	return state, r.err
}

// orEmpty is a number as an argument of a script; "" for 0.
func orEmpty(n int64) any {
	if n == 0 {
		return ""
	}
	return n
}
