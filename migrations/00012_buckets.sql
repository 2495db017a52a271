-- +goose Up
-- Stock in buckets: a split sale has a row for each of its buckets, with a goods id of its own.
-- bucket is the bucket's number. The sale's own row has bucket 0, and lists of sales show only that
-- row. The goods id also contains the number, but an index cannot select by a part of the id.
ALTER TABLE sales ADD COLUMN bucket BIGINT NOT NULL DEFAULT 0;

-- The public list, newest first. A query skips the other buckets of each sale.
CREATE INDEX sales_shown ON sales (bucket, status, goods_id);

-- A transfer of units between buckets is a stock cut of the source bucket. to_goods_id is the
-- destination bucket, or 0 for a merchant's cut.
ALTER TABLE stock_cuts ADD COLUMN to_goods_id BIGINT NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE stock_cuts DROP COLUMN to_goods_id;
DROP INDEX sales_shown /*! ON sales */;
ALTER TABLE sales DROP COLUMN bucket;
