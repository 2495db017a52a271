package orderwriter

import (
	"context"
	"fmt"
	"maps"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/seckill/reservation"
)

// errAdopted requests a new transaction after Redis adopted orders.
var errAdopted = fmt.Errorf("%w: it had orders of an older epoch", order.ErrTryAgain)

// adoption is what Redis adopted of the late orders of a batch, which is then written again.
type adoption struct {
	units map[string]int64 // that Redis adopted, by order number
	epoch int64            // in which it adopted them
	park  bool             // no open gate adopts the others
}

// adopt asks Redis for units of the present epoch for late orders of older ones. If the gate of
// that epoch is not open, or Redis does not answer, the result asks to park them. They cannot wait
// for the gate, because the rebuild that opens it waits for the queue.
func (w *Writer) adopt(ctx context.Context, b Batch, late *AdoptError) adoption {
	wanted := make(map[string]bool, len(late.OrderSns))
	for _, sn := range late.OrderSns {
		wanted[sn] = true
	}
	var lines []reservation.OrderLine
	for _, l := range b.Lines {
		if wanted[l.OrderSn] {
			lines, wanted[l.OrderSn] = append(lines, l), false
		}
	}
	ctx, cancel := context.WithTimeout(ctx, order.RedisDeadline)
	defer cancel()
	adopted, err := w.Redis.Adopt(ctx, b.GoodsID, late.Epoch, late.Limit, lines)
	if err != nil {
		w.Log.DebugContext(ctx, "late orders are parked until a gate of their sale is open",
			"goods_id", b.GoodsID, "orders", len(lines), "err", err)
		return adoption{units: b.Adopted, epoch: b.Epoch, park: true}
	}
	if b.Epoch == late.Epoch { // earlier adoptions hold within the same epoch only
		maps.Copy(adopted, b.Adopted)
	}
	return adoption{units: adopted, epoch: late.Epoch}
}

// splitAdopted returns the lines to write, and those that Redis refused to adopt. It leaves out a
// line of which Redis has another quantity: the message of that reservation is on its way.
func splitAdopted(
	lines []sourcedLine, adopted map[string]int64,
) (kept, lost []sourcedLine) {
	for _, l := range lines {
		switch units, asked := adopted[l.OrderSn]; {
		case !asked || units == l.Quantity:
			kept = append(kept, l)
		case units == 0:
			lost = append(lost, l)
		}
	}
	return kept, lost
}

// AdoptError means that a batch holds orders of an older epoch that the present epoch has not
// adopted. The transaction wrote nothing.
type AdoptError struct {
	Epoch    int64    // the present one
	Limit    int64    // the highest limit per buyer that the sale ever had
	OrderSns []string // the orders to adopt
}

// Error implements error.
func (e *AdoptError) Error() string { return "orders of an older epoch must be adopted first" }
