package admission

import (
	"strconv"
	"strings"
	"time"

	"flashsale.dev/seckill/internal/seckill"
)

// Record is what MySQL keeps of a waiting room, so that the room survives the loss of Redis.
type Record struct {
	Seed     string // 32 bytes in hex; secret until the draw
	Lease    string // lease and epoch of the sale that hands out numbers; "" before the first
	Limit    int64  // last number that is granted; numbers begin at 1
	Joined   int64  // lower bound of the last number that was handed out
	Admitted int64  // lower bound of the last position that was called
	Turns    []Turn // admissions that were not used when Redis' calls were Calls, or later
	Calls    int64  // see State; 0 before the first save
	Gaps     []Gap
	Digest   string // of the buyers who joined before the draw
	DrawSize int64  // NotDrawn, or how many numbers were drawn
}

// NotDrawn is the size of a draw that has not happened.
const NotDrawn = -1

// Grant asks MySQL for numbers.
type Grant struct {
	Lease string
	// Replaces is the lease whose room Redis still has whole; "" if its last numbers may be lost.
	Replaces string
	Joined   int64 // lower bound of the last number that was handed out
	Above    int64 // a limit above this one needs no more
	Numbers  int64
}

// Turn is an admission that is not used: a number, or "b" and the id of a buyer; then a space, and
// for how many more milliseconds it lasts.
type Turn = string

// Gap is a range of numbers that a lost master may not have handed out, with both ends.
type Gap struct {
	From int64 `json:"from"`
	To   int64 `json:"to"`
}

// Held are the units that may return, as MySQL has them.
type Held struct {
	Units int64     // of orders that are written and not paid
	Until time.Time // when the last of them can return; zero without units
	Stock int64     // that no active order holds, in Redis or on their way there
}

// State is a room in Redis at one moment.
type State struct {
	Gate       seckill.GateState
	Now        time.Time // Redis' clock
	SaleLease  string    // lease and epoch of the sale
	Lease      string    // those for which the room was made ready; "" without a room
	Available  int64
	Pending    int64
	Joined     int64 // last number that was handed out
	Granted    int64 // last number that may be handed out
	Admitted   int64 // last position that was called
	DrawSize   int64 // NotDrawn, or the last number that is drawn
	Digest     string
	Seed       string // in hex; "" until MySQL has the draw
	Commitment string // SHA-256 of the seed, in hex
	Over       bool   // nothing is left, and nothing can return
	Details
}

// Details are the part of a State that no buyer's place needs.
type Details struct {
	Called int64 // admissions that are neither used nor over
	Missed int64 // admissions that lapsed
	Gaps   []Gap
	Held   Held // with what is pending
	// Left counts numbers that buyers left, that a ticket's number replaced, or that were taken
	// again. While it is the same, no other number that was not called has ended.
	Left  int64
	Life  time.Duration // of an admission; 0 before the first call of an Admitter
	Calls int64         // grows with each call of Redis.Admit, over all masters of the sale
}

// Ready reports whether the room hands out numbers: its sale is open, in the epoch for which the
// room was made ready.
func (s State) Ready() bool {
	return s.Gate == seckill.GateOpen && s.Lease != "" && s.Lease == s.SaleLease
}

// intact reports whether the room of an earlier epoch lost no write: the master that has it is the
// one that handed out its numbers. A restart and a promotion change the master's id.
func (s State) intact() bool {
	before, _, _ := strings.Cut(s.Lease, "/")
	now, _, _ := strings.Cut(s.SaleLease, "/")
	return before != "" && before == now
}

// EpochOf returns the epoch of a lease of a room, which is "master/epoch"; 0 without one.
func EpochOf(lease string) int64 {
	_, epoch, _ := strings.Cut(lease, "/")
	n, err := strconv.ParseInt(epoch, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// Mark is the state of a number in the line. scripts/lua/join.lua returns the same codes.
type Mark int

// The marks.
const (
	InLine    Mark = 0 // waits, or has the admission that is returned with it
	Passed    Mark = 1 // its turn is over, or its buyer has left
	Late      Mark = 2 // is called next: its position was passed while Redis had lost it
	Unknown   Mark = 3 // the buyer has no number
	Exhausted Mark = 4 // no number is granted (see Store.GrantNumbers)
	OverLimit Mark = 5 // the buyer may not buy more, and gets no number
)

// Mode is what a call of Redis.Join does.
type Mode int

// The modes.
const (
	Find  Mode = 0
	Join  Mode = 1
	Leave Mode = 2
)

// Visit is one buyer's part of a call of Redis.Join.
type Visit struct {
	BuyerID string
	// Ticket is the number of the buyer's valid ticket, and Position its position; 0 without one.
	Ticket, Position int64
}

// Seat is the answer to a Visit.
type Seat struct {
	Number int64
	Until  time.Time // end of the buyer's admission; zero without one
	Mark   Mark
	// OrderSns are the orders of a buyer who is OverLimit.
	OrderSns []string
}

// Call asks Redis to call the next in line.
type Call struct {
	Admitted int64   // last position that was called
	Numbers  []int64 // at the following positions
	Life     time.Duration
}
