package order

import (
	"time"

	"flashsale.dev/seckill/internal/seckill"
)

// Observer hears what the background work finds and does, for whoever counts it. It is called by many goroutines and must
// not wait.
type Observer interface {
	// Audited is told of each round of the audit over a sale, every 5 s and on demand.
	Audited(a Audited)
	// Rebuilt is told of each rebuild that opened a sale again.
	Rebuilt(r Rebuilt)
}

// Audited is what one round of the audit found of a sale.
type Audited struct {
	GoodsID    int64
	BacklogAge time.Duration // of the oldest reservation that MySQL may not have; 0 where there is none
	Found      seckill.Differences
	Mended     int // of those: settled, published again, or on their way back
}

// Rebuilt is what one rebuild did.
type Rebuilt struct {
	GoodsID   int64         `json:"goodsId,string"`
	Why       string        `json:"why"`
	Was       int64         `json:"epochBefore"`
	Epoch     int64         `json:"epochAfter"`
	Available int64         `json:"available"`
	Relayed   int           `json:"relayed"`  // groups out of the outbox that the queue had not confirmed
	Found     int           `json:"found"`    // reservations that were pending, and are in MySQL now
	Lost      int           `json:"lost"`     // reservations that could be written in no form: each a dead letter
	Attempts  int           `json:"attempts"` // how often the sale was drained
	Shut      time.Duration `json:"-"`        // how long its gate stayed shut
}

// Unobserved is an Observer that forgets.
type Unobserved struct{}

// Audited does nothing.
func (Unobserved) Audited(Audited) {}

// Rebuilt does nothing.
func (Unobserved) Rebuilt(Rebuilt) {}
