package order

import (
	"time"

	"flashsale.dev/seckill/internal/seckill"
)

// DeskObserver hears of the desk's trips to Redis: each carries many buyers, so that it costs none of them much.
type DeskObserver interface {
	// Reserved hears what each of a trip's buyers was told, or, with no verdicts, why all of them were told nothing.
	Reserved(buyers int, verdicts []seckill.Verdict, took time.Duration, err error)
}

// WriterObserver hears of what is written, transaction by transaction.
type WriterObserver interface {
	// Wrote hears of one transaction that committed, and of the time since it was first tried.
	Wrote(out Outcome, took time.Duration)
	// Retried hears of one transaction that did not, and is tried again.
	Retried(cause RetryCause)
	// Buried hears of a message that was kept as a dead letter and has no order.
	Buried(reason FailureReason)
}

// RetryCause says in a stable word why a transaction is tried again.
type RetryCause string

// The causes.
const (
	RetrySwap     RetryCause = "cas"      // the compare-and-swap on the stock missed
	RetryAdopt    RetryCause = "adopt"    // its orders are of an older epoch and had to be taken in first
	RetryDatabase RetryCause = "database" // anything of the database's: away, a deadlock, a timeout
)

// RelayObserver hears of what the relay publishes.
type RelayObserver interface {
	// Relayed hears how many outbox entries were published that their API left behind.
	Relayed(entries int)
}
