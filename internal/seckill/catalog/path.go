package catalog

import (
	"context"
	"errors"
	"time"

	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/reservation"
)

// PathStore is where random paths are kept.
type PathStore interface {
	// IssuePaths stores paths and returns Redis' clock, or the refusal that holds for everybody, or a *GateError.
	IssuePaths(ctx context.Context, goodsID, epoch int64, life time.Duration, ps []reservation.PathGrant) (time.Time, error)
}

// pathKey keeps those together who think of the same epoch.
type pathKey struct{ goodsID, epoch int64 }

// IssuePath gives the buyer a random path to a sale that Admit has let in, and says until when it may be used.
func (s *Catalog) IssuePath(ctx context.Context, v seckill.View, buyerID int64) (path string, expiresAt time.Time, err error) {
	grant := reservation.PathGrant{Path: reservation.NewPath(v.GoodsID, buyerID), BuyerID: buyerID}
	now, err := s.paths.Do(ctx, pathKey{v.GoodsID, v.Epoch}, grant)
	gate, shut := errors.AsType[*seckill.GateError](err)
	if shut && gate.State == seckill.GateEpoch { // it was rebuilt since it was looked at
		now, err = s.paths.Do(ctx, pathKey{v.GoodsID, gate.Epoch}, grant)
		gate, shut = errors.AsType[*seckill.GateError](err)
	}
	if err == nil {
		return grant.Path, now.Add(reservation.PathTTL), nil
	}
	s.cache.remove(v.GoodsID) // the sale is not what it was
	switch {
	case shut:
		return "", time.Time{}, seckill.NewRebuilding(gate)
	case seckill.ReasonOf(err) == "":
		return "", time.Time{}, seckill.NewUnavailable("no path can be given", err)
	default:
		return "", time.Time{}, err
	}
}

func (s *Catalog) pathBatch(ctx context.Context, key pathKey, ps []reservation.PathGrant) ([]time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, readDeadline)
	defer cancel()
	now, err := s.redis.IssuePaths(ctx, key.goodsID, key.epoch, reservation.PathTTL, ps)
	if err != nil {
		return nil, err
	}
	nows := make([]time.Time, len(ps))
	for i := range nows {
		nows[i] = now
	}
	return nows, nil
}
