-- +goose Up
-- The time when a sale was retired, a day or more after it ended or was closed. All orders of a
-- retired sale are final, and none of its stock moves and stock cuts is open. Its keys may leave
-- Redis, and background workers skip it. The column is NULL before, and again after any change of
-- the sale. It needs no index, because the indexes on status and closed_at serve its queries.
ALTER TABLE sales ADD COLUMN retired_at BIGINT NULL;

-- +goose Down
ALTER TABLE sales DROP COLUMN retired_at;
