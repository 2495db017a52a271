package reservation

import (
	"time"

	"flashsale.dev/seckill/internal/seckill"
)

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
		return seckill.NewError(seckill.BadPath, "this path does not exist, has expired or is not yours for this goods; ask for a new one")
	case TooEarly:
		return seckill.NewError(seckill.NotStarted, "the sale has not started")
	case TooLate:
		return seckill.NewError(seckill.Ended, "the sale is over")
	case OverLimit:
		e := seckill.NewError(seckill.LimitReached, "this would be more than one buyer may have")
		e.Data = map[string]any{"orderSns": v.OrderSns}
		return e
	case TooFew:
		return seckill.NewSoldOut(v.Available)
	default:
		return seckill.NewFieldError("decrStock", "must be a whole number of at least 1")
	}
}

// Result is what one call of the reserve script did.
type Result struct {
	Verdicts  []Verdict // one for each reservation, in order
	OutboxID  string    // the outbox entry that holds all lines taken; "" where none was
	Available int64     // units left afterwards
	Now       time.Time // Redis' clock
	// Unsure, where it is set, says why Redis may yet lose what was taken, now or for a path used before: too few replicas
	// have it. It must not be promised; asked again with the same path, it may have become sure.
	NotReplicated error
}
