package reservation

import (
	"time"

	"flashsale.dev/seckill/internal/apierror"
	"flashsale.dev/seckill/internal/seckill"
)

// MaxBatch bounds the reservations of one script call and of one message.
const MaxBatch = 256

// OrderLine is the record of one reservation until MySQL has it. It is one entry of the outbox, of
// the pending set and of a message. The buyer's token supplies name and phone.
type OrderLine struct {
	OrderSn  string `json:"orderSn"`
	BuyerID  string `json:"buyerId"`
	Quantity int64  `json:"quantity"`
	Epoch    int64  `json:"epoch,omitempty"` // of the reservation; 0 from earlier releases
	Name     string `json:"name,omitempty"`
	Phone    string `json:"phone,omitempty"`
}

// Reservation asks for units under the order number of a random path.
type Reservation struct {
	OrderLine
	PathEnd time.Time // from then on the path permits nothing
	// StoredPath is a path that the release before ADR 68 stored in Redis; else empty. The release
	// of ADR 68 is the last that accepts one.
	StoredPath string
}

// Verdict is the reserve script's answer to one reservation.
type Verdict struct {
	Code      VerdictCode
	OrderSn   string   // of Taken and Repeated
	OrderSns  []string // of OverLimit: the buyer's active orders
	Available int64    // of TooFew: units left at that moment
}

// VerdictCode is the kind of a verdict. scripts/lua/reserve.lua returns the same numbers.
type VerdictCode int

// The verdicts. The script checks the path first, then the window, the admission, the quantity, the
// limit and the stock.
const (
	Taken     VerdictCode = 0 // units taken, and the line is in the outbox
	Repeated  VerdictCode = 1 // the buyer has this order already, nothing taken
	WrongPath VerdictCode = 2 // the path has expired, or no earlier release stored it
	TooEarly  VerdictCode = 3
	TooLate   VerdictCode = 4
	OverLimit VerdictCode = 5
	TooFew    VerdictCode = 6
	Malformed VerdictCode = 7 // the quantity is no positive integer: a bug of the caller
	// NotAdmitted: the sale has a waiting room, and the buyer's turn has not come or is over.
	NotAdmitted VerdictCode = 8
	// NumVerdicts is the number of codes, for arrays of counters.
	NumVerdicts = 9
)

// Err returns the refusal for the buyer that a verdict stands for, or nil if there is an order.
func (v Verdict) Err() error {
	switch v.Code {
	case Taken, Repeated:
		return nil
	case WrongPath:
		return apierror.New(
			apierror.BadPath,
			"this path does not exist, has expired or is not yours for this goods; ask for a new one",
		)
	case TooEarly:
		return apierror.New(apierror.NotStarted, "the sale has not started")
	case TooLate:
		return apierror.New(apierror.Ended, "the sale is over")
	case OverLimit:
		return apierror.New(apierror.LimitReached, "this would be more than one buyer may have").
			With("orderSns", v.OrderSns)
	case TooFew:
		return seckill.NewSoldOut(v.Available)
	case NotAdmitted:
		return seckill.NewWaiting()
	default:
		return apierror.NewBadField("decrStock", "must be a whole number of at least 1")
	}
}

// Result is the outcome of one call of the reserve script.
type Result struct {
	Verdicts  []Verdict // one for each reservation, in order
	OutboxID  string    // the outbox entry of all lines taken; "" if none
	Entries   []byte    // its body: the JSON array of these lines
	Available int64     // units left afterwards
	// NotReplicated is set if too few replicas have what was taken, now or under a path used
	// before. The service must not confirm these orders to buyers. A retry with the same path may
	// succeed.
	NotReplicated error
}
