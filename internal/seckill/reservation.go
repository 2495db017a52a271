package seckill

import "time"

// MaxBatch is how many reservations of one goods travel together at most: in one script call, in one message.
const MaxBatch = 256

// OrderLine is what is remembered of one reservation until MySQL has it: one entry of the outbox, of pending and of a
// message. Name and phone come from the buyer's token.
type OrderLine struct {
	OrderSn  string `json:"orderSn"`
	BuyerID  int64  `json:"buyerId"`
	Quantity int64  `json:"quantity"`
	Name     string `json:"name,omitempty"`
	Phone    string `json:"phone,omitempty"`
}

// Reservation asks for units under an order number, with the random path that permits it.
type Reservation struct {
	OrderLine
	Path string // 32 lower-case hex digits
}

// Verdict is the reserve script's answer to one reservation.
type Verdict struct {
	Code      VerdictCode
	OrderSn   string   // Taken, Repeated: the number that the path stands for
	OrderSns  []string // OverLimit: what the buyer already has
	Available int64    // TooFew: what was left when this one was judged
}

// VerdictCode tells the verdicts apart; scripts/lua/reserve.lua returns the same numbers.
type VerdictCode int

// The verdicts, in the order in which the script looks for them.
const (
	Taken     VerdictCode = 0 // units taken, remembered and in the outbox
	Repeated  VerdictCode = 1 // the path was used before: its order again, nothing taken
	WrongPath VerdictCode = 2
	TooEarly  VerdictCode = 3
	TooLate   VerdictCode = 4
	OverLimit VerdictCode = 5
	TooFew    VerdictCode = 6
	Malformed VerdictCode = 7 // a quantity that is no positive decimal integer: a caller's bug
	// NumVerdicts is how many there are: whoever counts them by code has so many places.
	NumVerdicts = 8
)

// Err is the refusal that a verdict means to the buyer, or nil where there is an order.
func (v Verdict) Err() error {
	switch v.Code {
	case Taken, Repeated:
		return nil
	case WrongPath:
		return NewError(BadPath, "this path does not exist, has expired or is not yours for this goods; ask for a new one")
	case TooEarly:
		return NewError(NotStarted, "the sale has not started")
	case TooLate:
		return NewError(Ended, "the sale is over")
	case OverLimit:
		e := NewError(LimitReached, "this would be more than one buyer may have")
		e.Data = map[string]any{"orderSns": v.OrderSns}
		return e
	case TooFew:
		return newSoldOut(v.Available)
	default:
		return NewFieldError("decrStock", "must be a whole number of at least 1")
	}
}

// ReserveResult is what one call of the reserve script did.
type ReserveResult struct {
	Verdicts  []Verdict // one for each reservation, in order
	OutboxID  string    // the outbox entry that holds all lines taken; "" where none was
	Available int64     // units left afterwards
	Now       time.Time // Redis' clock
	// Unsure, where it is set, says why Redis may yet lose what was taken, now or for a path used before: too few replicas
	// have it. It must not be promised; asked again with the same path, it may have become sure.
	NotReplicated error
}

// GateError says that a sale's gate is shut: nothing was taken. Redis holds no valid state of the sale,
// or holds another epoch than the caller thought.
type GateError struct {
	State GateState
	Epoch int64 // the epoch Redis has; 0 where it has none
}

// Error names the state.
func (e *GateError) Error() string { return "the sale's gate is shut: " + e.State.String() }

// GateState is why a script lets nothing through, or Open; the scripts return the same numbers.
type GateState int

// The states of a gate.
const (
	GateOpen    GateState = 0
	GateMissing GateState = 1 // Redis knows nothing of the sale
	GateShut    GateState = 2 // closed on purpose, while it is being rebuilt
	GateLease   GateState = 3 // loaded under another master's replication id: Redis was restarted or failed over
	GateEpoch   GateState = 4 // another epoch than the caller's: look again and ask again
	GateBacklog GateState = 5 // the outbox is too old to promise anything more
)

var gateNames = [...]string{"open", "missing", "shut", "lease lost", "another epoch", "backlog too old"}

// String is the state in words, for logs.
func (s GateState) String() string {
	if s < 0 || int(s) >= len(gateNames) {
		return "unknown"
	}
	return gateNames[s]
}

// MaxQuantity is how many units one reservation may ask for: the highest perBuyerLimit there is.
const MaxQuantity = 1000

// PathGrant is one random path and the buyer it is for.
type PathGrant struct {
	Path    string // 32 lower-case hex digits
	BuyerID int64
}
