package reconcile

import (
	"time"

	"flashsale.dev/seckill/internal/seckill"
)

// Sample is the state of all live sales at one moment.
type Sample struct {
	Sales []SaleSample // the newest first
	Waiting
	Memory Memory // of Redis
	Took   time.Duration
}

// Waiting counts what waits, in all sales.
type Waiting struct {
	DeadLetters int64 // for an operator
	Refunds     int64 // given up, for an operator
	Parked      int64 // late orders, for units
	// RefundAge is for how long the oldest refund that is still tried has been due; 0 without one.
	RefundAge time.Duration
}

// Memory is what Redis uses and may use.
type Memory struct {
	Used int64 // bytes
	Most int64 // bytes; 0: no limit of its own
}

// SaleSample is the state of one sale. Figures that Redis did not return are zero.
type SaleSample struct {
	GoodsID int64
	Gate    seckill.GateState
	OnSale  bool // exposed and not over: its gate should be open
	Ledger  seckill.Ledger

	Accounted  bool          // the ledger could be read
	Outbox     int64         // entries
	OutboxAge  time.Duration // of the oldest entry
	PendingAge time.Duration // see seckill.View.PendingSince
}

// Difference is the number of units that are missing or counted twice: |total − available − pending
// − sold|.
func (s SaleSample) Difference() int64 {
	d := s.Ledger.Total - s.Ledger.Available - s.Ledger.Pending - s.Ledger.Sold
	return max(d, -d)
}

// Oversold is the number of units that MySQL has sold beyond the total.
func (s SaleSample) Oversold() int64 { return max(0, s.Ledger.Database.Active-s.Ledger.Total) }
