package sqlstore

import (
	"context"
	"slices"
	"time"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/inventory"
)

// oldRows chooses the rows of a table that are deleted. Shard and id are columns that name a row.
type oldRows struct {
	table, shard, id string
	where            string
	args             []any
}

// ForgetKeys deletes idempotency keys made before a moment, at most limit in a call, as the methods
// below do. It returns how many it found.
func (s *Store) ForgetKeys(ctx context.Context, before time.Time, limit int) (int, error) {
	return forget[string](ctx, s, oldRows{
		table: "idempotency_keys", shard: "actor_id", id: "idempotency_key", where: "made_at < ?",
		args: []any{before.UnixMilli()},
	}, limit)
}

// ForgetMoves deletes stock moves that were released before a moment.
func (s *Store) ForgetMoves(ctx context.Context, before time.Time, limit int) (int, error) {
	return forget[int64](ctx, s, oldRows{
		table: "stock_moves", shard: "goods_id", id: "id", where: "given_at < ?",
		args: []any{before.UnixMilli()},
	}, limit)
}

// ForgetCuts deletes stock cuts that were made before a moment and have ended.
func (s *Store) ForgetCuts(ctx context.Context, before time.Time, limit int) (int, error) {
	return forget[int64](ctx, s, oldRows{
		table: "stock_cuts", shard: "goods_id", id: "id", where: "state IN ? AND made_at < ?",
		args: []any{
			[]inventory.CutState{inventory.CutDone, inventory.CutUndone}, before.UnixMilli(),
		},
	}, limit)
}

// ForgetBarriers deletes barriers that were reached before a moment. No rebuild waits for them.
func (s *Store) ForgetBarriers(ctx context.Context, before time.Time, limit int) (int, error) {
	return forget[int64](ctx, s, oldRows{
		table: "barriers", shard: "goods_id", id: "token", where: "reached_at < ?",
		args: []any{before.UnixMilli()},
	}, limit)
}

// ForgetDeliveries deletes webhook deliveries that ended before a moment.
func (s *Store) ForgetDeliveries(ctx context.Context, before time.Time, limit int) (int, error) {
	return forget[string](ctx, s, oldRows{
		table: "webhook_deliveries", shard: "endpoint_id", id: "id", where: "ended_at < ?",
		args: []any{before.UnixMilli()},
	}, limit)
}

// ForgetAPIKeys deletes API keys that were revoked before a moment.
func (s *Store) ForgetAPIKeys(ctx context.Context, before time.Time, limit int) (int, error) {
	return forget[string](ctx, s, oldRows{
		table: "api_keys", shard: "id", id: "id", where: "revoked_at < ?",
		args: []any{before.UnixMilli()},
	}, limit)
}

// ForgetTombstones deletes tombstones that no message has filled, of the next limit sales after a
// goods id that were retired before a moment. It returns also the last of these sales, or 0 after
// the last of all. A later query of such a number writes its tombstone again.
func (s *Store) ForgetTombstones(
	ctx context.Context, before time.Time, above int64, limit int,
) (found int, last int64, err error) {
	var goods []int64
	err = s.read(ctx).Model(&saleRow{}).
		Where("goods_id > ? AND retired_at < ?", above, before.UnixMilli()).
		Order("goods_id").Limit(limit).Pluck("goods_id", &goods).Error
	if err != nil || len(goods) == 0 {
		return 0, 0, wrapError("find retired sales", err)
	}
	found, err = forget[int64](ctx, s, oldRows{
		table: "orders", shard: "goods_id", id: "order_sn",
		where: `goods_id IN ? AND status = ? AND quantity = 0 AND failure_reason = ?
			AND closed_at < ?`,
		args: []any{goods, order.Failed, order.FailedLost, before.UnixMilli()},
	}, limit)
	return found, goods[len(goods)-1], err
}

// keepForEndpoints is how much longer events are kept for enabled webhooks that lack them. One that
// accepts nothing is disabled by then.
const keepForEndpoints = 5 * 24 * time.Hour

// ForgetEvents deletes events that happened before a moment and that every enabled webhook has, or
// that are older by keepForEndpoints, the first ones first. Positions grow nearly with the time, so
// it stops at the first younger event.
func (s *Store) ForgetEvents(ctx context.Context, before time.Time, limit int) (int, error) {
	last, err := s.deliveredTo(ctx)
	var rows []eventRow
	if err == nil {
		err = s.read(ctx).Select("goods_id", "id", "occurred_at", "position").
			Where("position > 0").Order("position").Limit(limit).Find(&rows).Error
	}
	if err != nil {
		return 0, wrapError("find old events", err)
	}
	young := slices.IndexFunc(rows, func(r eventRow) bool {
		end := before
		if *r.Position > last {
			end = before.Add(-keepForEndpoints)
		}
		return r.OccurredAt >= end.UnixMilli()
	})
	if young >= 0 {
		rows = rows[:young]
	}
	ids := make(map[int64][]string)
	for _, r := range rows {
		ids[r.GoodsID] = append(ids[r.GoodsID], r.ID)
	}
	old := oldRows{table: "events", shard: "goods_id", id: "id", where: "position > 0"}
	return len(rows), wrapError("delete old events", remove(ctx, s, old, ids))
}

// forget finds old rows and deletes them by their keys, because Vitess deletes by no limit. It
// checks the condition again: a row may have changed. The shard's column has the type K.
func forget[K int64 | string](
	ctx context.Context, s *Store, old oldRows, limit int,
) (int, error) {
	op := "delete old rows of " + old.table
	var found []struct {
		Shard K
		ID    string
	}
	err := s.read(ctx).Table(old.table).Select(old.shard+" AS shard, "+old.id+" AS id").
		Where(old.where, old.args...).Limit(limit).Scan(&found).Error
	if err != nil {
		return 0, wrapError(op, err)
	}
	ids := make(map[K][]string)
	for _, row := range found {
		ids[row.Shard] = append(ids[row.Shard], row.ID)
	}
	return len(found), wrapError(op, remove(ctx, s, old, ids))
}

// remove deletes the rows with these keys, by the column that names the shard, to which the
// condition still applies.
func remove[K int64 | string](
	ctx context.Context, s *Store, old oldRows, ids map[K][]string,
) error {
	for shard, all := range ids {
		for part := range slices.Chunk(all, chunkOf(s.db)) {
			err := s.read(ctx).Exec("DELETE FROM "+old.table+" WHERE "+old.shard+" = ? AND "+old.id+
				" IN ? AND "+old.where, append([]any{shard, part}, old.args...)...).Error
			if err != nil {
				return err
			}
		}
	}
	return nil
}
