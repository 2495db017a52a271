-- +goose Up
-- Stock in buckets: a sale that is split has a row for each of its buckets, every one a goods of its own. bucket is which one:
-- 0 is the sale's own row, and what no list of sales shows is above. It is in the goods id too, where SQL can't look.
ALTER TABLE sales ADD COLUMN bucket BIGINT NOT NULL DEFAULT 0;

-- What buyers see, newest first, without walking over the other buckets of each sale.
CREATE INDEX sales_shown ON sales (bucket, status, goods_id);

-- Units on their way from one bucket to another are a cut of the one that says who is to have them; 0: a merchant's cut.
ALTER TABLE stock_cuts ADD COLUMN to_goods_id BIGINT NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE stock_cuts DROP COLUMN to_goods_id;
DROP INDEX sales_shown /*! ON sales */;
ALTER TABLE sales DROP COLUMN bucket;
