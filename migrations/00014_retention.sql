-- +goose Up
-- Stock moves that Redis does not have yet, by goods, so that the releaser serves each sale. Moves
-- that Redis has are deleted by their age.
CREATE INDEX stock_moves_by_goods ON stock_moves (given_at, goods_id, made_at);
DROP INDEX stock_moves_not_given /*! ON stock_moves */;

-- Live sales: the rows without retired_at that are no drafts. Sales retired a moment ago are read
-- with it too, because they leave Redis.
CREATE INDEX sales_live ON sales (retired_at, status, goods_id);

-- The deletion of old barriers.
CREATE INDEX barriers_by_age ON barriers (reached_at);

-- +goose Down
DROP INDEX barriers_by_age /*! ON barriers */;
DROP INDEX sales_live /*! ON sales */;
CREATE INDEX stock_moves_not_given ON stock_moves (given_at, made_at);
DROP INDEX stock_moves_by_goods /*! ON stock_moves */;
