package orderwriter

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/seckill/reservation"
)

// errAdopted asks for a new transaction, now that Redis has been asked.
var errAdopted = fmt.Errorf("%w: its orders were of an older epoch", order.ErrTryAgain)

// adopt has Redis' epoch of today take in lines of older ones, and tells which got their units. It always returns
// ErrTryAgain: the batch is to be written anew.
func (w *Writer) adopt(ctx context.Context, b Batch, late *AdoptError) (map[string]bool, int64, error) {
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
	adopted, err := w.redis.Adopt(ctx, b.GoodsID, late.Epoch, late.Limit, lines)
	if err != nil {
		return nil, 0, errors.Join(order.ErrTryAgain, err)
	}
	if b.Epoch == late.Epoch {
		maps.Copy(adopted, b.Adopted)
	}
	return adopted, late.Epoch, errAdopted
}

// dropLost takes out the lines that were looked at and not adopted.
func dropLost(lines, lost []sourcedLine, adopted map[string]bool) (kept, dropped []sourcedLine) {
	for _, l := range lines {
		if took, asked := adopted[l.OrderSn]; asked && !took {
			lost = append(lost, l)
		} else {
			kept = append(kept, l)
		}
	}
	return kept, lost
}

// AdoptError says that a batch holds numbers of an older epoch that the present one has not taken in.
// Nothing was written: take them in, and write again.
type AdoptError struct {
	Epoch    int64    // the present one
	Limit    int64    // the highest that the sale's limit ever was
	OrderSns []string // not in MySQL, of older epochs, not adopted
}

// Error counts them.
func (e *AdoptError) Error() string { return "orders of an older epoch must be taken in first" }
