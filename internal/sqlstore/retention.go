package sqlstore

import (
	"context"
	"slices"
	"time"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/inventory"
	"flashsale.dev/seckill/internal/order/retention"
)

// oldRows selects the rows of a table to delete. A row is deleted by its columns shard and id.
type oldRows struct {
	table, shard, id string
	where            string
	args             []any
}

// Forget deletes rows of a kind that are older than a moment; retention.Kind says from when the age
// counts. It deletes at most limit, and returns how many it found. It serves no tombstones.
func (s *Store) Forget(
	ctx context.Context, kind retention.Kind, before time.Time, limit int,
) (int, error) {
	old := oldRows{shard: "goods_id", id: "id", args: []any{before.UnixMilli()}}
	switch kind {
	case retention.Keys:
		old.table, old.where = "idempotency_keys", "made_at < ?"
		old.shard, old.id = "actor_id", "idempotency_key"
		return forget[string](ctx, s, old, limit)
	case retention.Deliveries:
		old.table, old.where, old.shard = "webhook_deliveries", "ended_at < ?", "endpoint_id"
		return forget[string](ctx, s, old, limit)
	case retention.APIKeys:
		old.table, old.where, old.shard = "api_keys", "revoked_at < ?", "id"
		return forget[string](ctx, s, old, limit)
	case retention.Moves:
		old.table, old.where = "stock_moves", "given_at < ?"
	case retention.Cuts:
		old.table, old.where = "stock_cuts", "state IN ? AND made_at < ?"
		ended := []inventory.CutState{inventory.CutDone, inventory.CutUndone}
		old.args = []any{ended, before.UnixMilli()}
	case retention.Barriers: // no rebuild waits for them
		old.table, old.where, old.id = "barriers", "reached_at < ?", "token"
	case retention.Events:
		return s.forgetEvents(ctx, before, limit)
	}
	return forget[int64](ctx, s, old, limit)
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

// forgetEvents deletes events that happened before a moment and that every enabled webhook has, or
// that are older by keepForEndpoints, the first ones first. Positions grow nearly with the time, so
// it stops at the first younger event.
func (s *Store) forgetEvents(ctx context.Context, before time.Time, limit int) (int, error) {
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

// forget finds old rows and deletes them by their keys, because Vitess refuses a DELETE with a
// limit. It checks the condition again: a row may have changed. The shard's column has the type K.
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

// remove deletes the rows with these keys to which the condition still applies. Each statement is
// on one shard.
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
