package redisstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/redis/go-redis/v9"

	"flashsale.dev/seckill/internal/order/rebuild"
)

// Lease reads the lease and the time of the master that holds a goods' keys.
func (s *Store) Lease(ctx context.Context, goodsID int64) (rebuild.Lease, error) {
	return s.leaseOf(ctx, s.client, []string{keysOf(goodsID).sale()})
}

func (s *Store) leaseOf(
	ctx context.Context, node redis.UniversalClient, keys []string,
) (rebuild.Lease, error) {
	fields, err := s.readLease.Run(ctx, node, keys, s.opts.Lease).Slice()
	r := &reply{fields: fields}
	l := rebuild.Lease{ID: r.string(), Now: r.millis()}
	if err = cmp.Or(err, r.err); err != nil {
		return l, fmt.Errorf("read the lease of a redis: %w", err)
	}
	return l, nil
}

// OpenGate opens the gate of a loaded epoch for a time, or renews it. It returns false where the
// gate is shut, or Redis has another epoch, or not the lease with which it was loaded.
func (s *Store) OpenGate(
	ctx context.Context, goodsID, epoch int64, t rebuild.OpenTime,
) (bool, error) {
	opened, err := s.open.Run(ctx, s.client, []string{keysOf(goodsID).sale()}, s.opts.Lease, epoch,
		t.From.UnixMilli(), t.Until.UnixMilli()).Bool()
	if err != nil {
		return false, fmt.Errorf("open a gate in redis: %w", err)
	}
	return opened, nil
}

// renewBatch is how many gates one pipeline renews.
const renewBatch = 500

// RenewGates renews gates on every master. times returns the sales that MySQL has open on a lease,
// and the time for which they are open. One master that fails keeps no other from it.
func (s *Store) RenewGates(
	ctx context.Context,
	times func(context.Context, rebuild.Lease) ([]rebuild.OpenSale, rebuild.OpenTime, error),
) error {
	var mu sync.Mutex
	renew := func(ctx context.Context, node redis.UniversalClient) error {
		lease, err := s.leaseOf(ctx, node, nil)
		if err != nil {
			return err
		}
		mu.Lock() // one statement at a time
		sales, t, err := times(ctx, lease)
		mu.Unlock()
		if err != nil || len(sales) == 0 {
			return err
		}
		return s.renewOn(ctx, node, sales, t)
	}
	_, failed, err := eachMaster(ctx, s.client, renew)
	return errors.Join(append(failed, err)...)
}

// renewOn renews gates on one master. A pipeline cannot repeat EVALSHA with the script, which is
// therefore loaded first.
func (s *Store) renewOn(
	ctx context.Context, node redis.UniversalClient, sales []rebuild.OpenSale, t rebuild.OpenTime,
) error {
	if err := s.open.Load(ctx, node).Err(); err != nil {
		return fmt.Errorf("renew gates in redis: %w", err)
	}
	var failed []error // one slot that has moved keeps no other gate from its renewal
	for chunk := range slices.Chunk(sales, renewBatch) {
		pipe := node.Pipeline()
		for _, sale := range chunk {
			s.open.EvalSha(ctx, pipe, []string{keysOf(sale.GoodsID).sale()}, s.opts.Lease,
				sale.Epoch, t.From.UnixMilli(), t.Until.UnixMilli())
		}
		if _, err := pipe.Exec(ctx); err != nil {
			failed = append(failed, fmt.Errorf("renew gates in redis: %w", err))
		}
	}
	return errors.Join(failed...)
}
