package order

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"flashsale.dev/seckill/internal/seckill"
)

// errAdopted asks for a new transaction, now that Redis has been asked.
var errAdopted = fmt.Errorf("%w: its orders were of an older epoch", ErrTryAgain)

// adopt has Redis' epoch of today take in lines of older ones, and tells which got their units. It always returns
// ErrTryAgain: the batch is to be written anew.
func (w *Writer) adopt(ctx context.Context, b Batch, late *AdoptError) (map[string]bool, int64, error) {
	wanted := make(map[string]bool, len(late.OrderSns))
	for _, sn := range late.OrderSns {
		wanted[sn] = true
	}
	var lines []seckill.Line
	for _, l := range b.Lines {
		if wanted[l.OrderSn] {
			lines, wanted[l.OrderSn] = append(lines, l), false
		}
	}
	adopted, err := w.redis.Adopt(ctx, b.GoodsID, late.Epoch, late.Limit, lines)
	if err != nil {
		return nil, 0, errors.Join(ErrTryAgain, err)
	}
	if b.Epoch == late.Epoch {
		maps.Copy(adopted, b.Adopted)
	}
	return adopted, late.Epoch, errAdopted
}

// dropLost takes out the lines that were looked at and not adopted.
func dropLost(lines, lost []sourced, adopted map[string]bool) (kept, dropped []sourced) {
	for _, l := range lines {
		if took, asked := adopted[l.OrderSn]; asked && !took {
			lost = append(lost, l)
		} else {
			kept = append(kept, l)
		}
	}
	return kept, lost
}
