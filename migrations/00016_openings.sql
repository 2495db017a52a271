-- +goose Up
-- The Redis that may have the sale's gate open, where Redis can fail over: the replication id of that
-- master. A gate that nobody renews ends after some seconds, and only a gate that this column names
-- is renewed. A minus before the id means that nobody renews it any more: a rebuild has begun, and
-- the gate may still be open for these seconds. Empty: no gate is open, or Redis cannot fail over.
ALTER TABLE sales ADD COLUMN opened_on VARCHAR(64) NOT NULL DEFAULT '';

-- The sales whose gates a worker renews on one master, every second.
CREATE INDEX sales_opened ON sales (opened_on, retired_at, goods_id, epoch);

-- +goose Down
DROP INDEX sales_opened /*! ON sales */;
ALTER TABLE sales DROP COLUMN opened_on;
