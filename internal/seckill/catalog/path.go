package catalog

import (
	"context"
	"errors"
	"slices"
	"time"

	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/reservation"
)

// pathKey batches the callers that assume the same epoch of a sale.
type pathKey struct{ goodsID, epoch int64 }

// IssuePath makes a random path to a sale that Admit returned. expiresAt is the end of
// its validity by Redis' clock.
func (c *Catalog) IssuePath(
	ctx context.Context, v seckill.View, buyerID int64,
) (path string, expiresAt time.Time, err error) {
	path = reservation.NewPath(v.GoodsID, buyerID)
	grant := reservation.PathGrant{Path: path, BuyerID: buyerID}
	now, err := c.paths.Do(ctx, pathKey{v.GoodsID, v.Epoch}, grant)
	gate, shut := errors.AsType[*seckill.GateError](err)
	if shut && gate.State == seckill.GateEpoch { // a rebuild ended after the view was read
		now, err = c.paths.Do(ctx, pathKey{v.GoodsID, gate.Epoch}, grant)
		gate, shut = errors.AsType[*seckill.GateError](err)
	}
	if err == nil {
		return path, now.Add(reservation.PathTTL), nil
	}
	c.cache.remove(v.GoodsID) // Redis contradicts the cached view
	if shut {
		return "", time.Time{}, seckill.NewRebuilding(gate)
	}
	return "", time.Time{}, seckill.OrUnavailable(err, "no path can be given")
}

// pathBatch stores the paths of a batch in one call and returns Redis' clock for each.
func (c *Catalog) pathBatch(
	ctx context.Context, key pathKey, grants []reservation.PathGrant,
) ([]time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, readDeadline)
	defer cancel()
	now, err := c.reader.redis.IssuePaths(ctx, key.goodsID, key.epoch, reservation.PathTTL, grants)
	if err != nil {
		return nil, err
	}
	return slices.Repeat([]time.Time{now}, len(grants)), nil
}
