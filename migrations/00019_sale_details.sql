-- +goose Up
-- What a merchant says of a sale's goods. external_id is the merchant's own id of the sale; NULL: none.
-- An empty currency is the installation's. metadata is a JSON object of strings, or empty.
-- Statements by hand, one each, because SQLite adds one column at a time.
ALTER TABLE sales ADD COLUMN description VARCHAR(4000) NOT NULL DEFAULT '';
ALTER TABLE sales ADD COLUMN image_url VARCHAR(1000) NOT NULL DEFAULT '';
ALTER TABLE sales ADD COLUMN external_id VARCHAR(64) NULL;
ALTER TABLE sales ADD COLUMN metadata TEXT NULL;
ALTER TABLE sales ADD COLUMN currency VARCHAR(3) NOT NULL DEFAULT '';

-- A merchant's own ids are unique. Where goods ids are sharded, they are unique within a shard.
CREATE UNIQUE INDEX sales_of_external_id ON sales (merchant_id, external_id);

-- +goose Down
DROP INDEX sales_of_external_id /*! ON sales */;
ALTER TABLE sales DROP COLUMN description;
ALTER TABLE sales DROP COLUMN image_url;
ALTER TABLE sales DROP COLUMN external_id;
ALTER TABLE sales DROP COLUMN metadata;
ALTER TABLE sales DROP COLUMN currency;
