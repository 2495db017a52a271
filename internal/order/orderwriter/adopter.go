package orderwriter

import (
	"context"
	"time"

	"flashsale.dev/seckill/internal/seckill/reservation"
	"flashsale.dev/seckill/internal/workers"
)

const (
	adoptInterval = time.Second
	// adoptDeadline bounds the work on one sale in a round.
	adoptDeadline = 5 * time.Second
	// lateChunk is the number of goods in a list, and of late orders in a batch.
	lateChunk = 500
)

// LateStore is MySQL for the adopter.
type LateStore interface {
	// LateGoods lists goods with parked orders, above a goods id, in ascending order.
	LateGoods(ctx context.Context, above int64, limit int) ([]int64, error)
	// LateOrders lists parked orders of a goods, after a number, in ascending order.
	LateOrders(
		ctx context.Context, goodsID int64, after string, limit int,
	) ([]reservation.OrderLine, error)
}

// Adopter writes the parked orders of sales whose gate is open again. Most are written by the epoch
// that begins after they were parked; the Adopter finds the others. Several processes may run it.
type Adopter struct {
	*Writer
	Late LateStore
}

// Run works until ctx ends.
func (a *Adopter) Run(ctx context.Context) error {
	return workers.Every(ctx, adoptInterval, func(ctx context.Context) {
		workers.Warn(ctx, a.Log, "cannot list parked orders, retrying", a.RunOnce(ctx))
	})
}

// RunOnce tries the parked orders of each sale once. Those of a sale that is shut stay parked, and
// delay no other sale.
func (a *Adopter) RunOnce(ctx context.Context) error {
	for above := int64(0); ; {
		goods, err := a.Late.LateGoods(ctx, above, lateChunk)
		if err != nil || len(goods) == 0 {
			return err
		}
		workers.Each(ctx, goods, func(ctx context.Context, goodsID int64) {
			err := a.adoptAll(ctx, goodsID)
			workers.Warn(ctx, a.Log, "cannot adopt parked orders, retrying", err,
				"goods_id", goodsID)
		})
		above = goods[len(goods)-1]
	}
}

// adoptAll tries the parked orders of one goods, in batches, until one of them stays parked.
func (a *Adopter) adoptAll(ctx context.Context, goodsID int64) error {
	ctx, cancel := context.WithTimeout(ctx, adoptDeadline)
	defer cancel()
	for after := ""; ; {
		late, err := a.Late.LateOrders(ctx, goodsID, after, lateChunk)
		if err != nil || len(late) == 0 {
			return err
		}
		lines := make([]sourcedLine, len(late))
		for i, l := range late {
			lines[i].OrderLine = l
		}
		if err := a.writeLines(ctx, goodsID, lines); err != nil {
			return err
		}
		first, err := a.Late.LateOrders(ctx, goodsID, after, 1)
		if err != nil || len(first) > 0 && first[0].OrderSn == late[0].OrderSn {
			return err // the gate is not open
		}
		after = late[len(late)-1].OrderSn
	}
}
