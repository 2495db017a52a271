package inventory

import (
	"context"
	"errors"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/salechange"
)

// StockCut withdraws unsold units of an exposed sale. Its row is in MySQL before the call to Redis.
// The row has everything that any process needs to finish the change (ADR 30).
type StockCut struct {
	ID       string // a UUIDv7; Redis decides it once per epoch
	GoodsID  int64
	Epoch    int64 // the epoch in Redis that the cut applies to
	Quantity int64 // > 0
	Wanted   salechange.Change
	By       seckill.Actor
	State    CutState
}

// CutState is the state of a stock cut.
type CutState string

// The states of a stock cut.
const (
	CutOpen   CutState = "open"   // not applied in Redis, or MySQL lacks Redis' answer
	CutDone   CutState = "done"   // Redis and MySQL have it
	CutUndone CutState = "undone" // neither has it
)

// Move is the cut as Redis applies it.
func (c StockCut) Move() order.StockMove {
	return order.StockMove{
		ID: c.ID, GoodsID: c.GoodsID, Epoch: c.Epoch, Kind: order.MoveDelta, Quantity: -c.Quantity,
	}
}

// errCutOpen means that Redis can't decide a cut now. The change syncer finishes it.
var errCutOpen = errors.New("the cut is stored and is finished as soon as redis answers")

// finishCut takes a cut's units from Redis and writes the answer to MySQL until the cut has ended.
// Any number of processes may repeat any step: within an epoch Redis answers the same for an id,
// and MySQL ends a row once.
func (s Stores) finishCut(ctx context.Context, c StockCut) (StockCut, seckill.Sale, error) {
	var sale seckill.Sale
	for range 3 { // a new epoch that begins in between needs another attempt
		results, err := s.Redis.Release(ctx, c.GoodsID, []order.StockMove{c.Move()})
		if err != nil {
			return c, sale, err
		}
		if results[0] == order.MoveDeferred {
			return c, sale, errCutOpen
		}
		now, err := s.Store.Now(ctx)
		if err != nil {
			return c, sale, err
		}
		c, sale, err = s.Store.EndCut(ctx, c, results[0], now)
		if err != nil || c.State != CutOpen {
			return c, sale, err
		}
	}
	return c, sale, errCutOpen
}
